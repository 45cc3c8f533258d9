//! Writes samples as records, preceded by the mappings and symbol files that name their addresses.

mod class_path;
mod compiled_code;
mod kept_files;
mod manifest_room;
mod symbols;
mod written;

pub use written::Written;

use super::kernel::Kernel;
use super::request::KeepSymbols;
use super::vdso::Vdso;
use kept_files::KeptFiles;
use manifest_room::ManifestRoom;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;
use varid_model::{Address, FrameAddress, MonotonicNs, Period, Pid, Precision, Tid};
use varid_process::{AddressSpace, ProcessImage, ProcessMapping};
use varid_recording::{
    CpuMode, ImageKind, Manifest, MappingRecord, NO_UID, Owner, RecordedCodeWriter, Sample,
    SessionImage, SessionRecord, SessionWriter, is_own_memory,
};
use varid_symbolizer::hex;
use varid_symbolizer::substitute::Cache;
use varid_vm::ManagedProcess;
use varid_vm::attribution::RemapTable;

/// Maximum age of the counts in a running session's manifest.
const MANIFEST_AGE: Duration = Duration::from_secs(5);

/// An error of the recording.
#[derive(Debug, Error)]
pub enum RecorderError {
    /// The session's folder or files cannot be written.
    #[error(transparent)]
    Recording(#[from] varid_recording::Error),
    /// A symbol file cannot be read or written.
    #[error(transparent)]
    Symbols(#[from] varid_symbolizer::Error),
    /// A file of the session cannot be written.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file.
        path: std::path::PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl RecorderError {
    /// Returns true if the storage is full.
    pub fn is_full(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let kind = error.downcast_ref().map(std::io::Error::kind);
            if matches!(
                kind,
                // The last one: the file size limit is reached (RLIMIT_FSIZE).
                Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
            ) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

/// The VMs that are in the manifest.
#[derive(Debug, Default)]
struct NotedVms {
    libraries: HashSet<PathBuf>,
    /// The processes of Java programs whose class path is there.
    java: HashSet<Pid>,
}

/// Writes a session.
#[derive(Debug)]
pub struct Recorder {
    writer: SessionWriter,
    /// Addresses of methods without bytecode.
    pub remap: RemapTable,
    kernel: Option<Kernel>,
    vdso: Vdso,
    kept: KeptFiles,
    /// Space for entries with paths that recorded processes have chosen.
    room: ManifestRoom,
    noted: NotedVms,
    /// The substitutes that are written, by content: paths relative to the folder of symbols.
    substitutes: HashMap<[u8; 20], String>,
    /// Substitutes of dex files from earlier sessions.
    cache: Option<Cache>,
    /// Compiled code of VMs. None before the first of it.
    compiled_code: Option<RecordedCodeWriter>,
    /// When the manifest was last saved. None if the next flush must save it.
    saved: Option<Instant>,
}

impl Recorder {
    /// Creates a recording in `dir`, which is given to `owner` when it is complete. `cache`: the user's cache folder.
    pub fn create(
        dir: &Path,
        manifest: Manifest,
        owner: Option<Owner>,
        cache: &Path,
    ) -> Result<Self, RecorderError> {
        let writer = SessionWriter::create_for(dir, manifest, owner)?;
        let remap = RemapTable::new().map_err(|source| RecorderError::Io {
            path: "/dev/urandom".into(),
            source,
        })?;
        let kernel = Kernel::running()
            .inspect_err(|error| tracing::warn!("kernel functions stay without names: {error}"))
            .ok();
        let mut recorder = Self {
            writer,
            remap,
            kernel,
            vdso: Vdso::own(),
            kept: KeptFiles::default(),
            room: ManifestRoom::default(),
            noted: NotedVms::default(),
            substitutes: HashMap::new(),
            cache: symbols::substitutes(cache),
            compiled_code: None,
            saved: None,
        };
        recorder.kernel_mapping()?;
        recorder.flush()?;
        Ok(recorder)
    }

    /// Sets the files whose symbols are kept.
    pub fn keep_symbols(&mut self, of: KeepSymbols) {
        self.kept = KeptFiles::new(of);
    }

    /// The session's writer, which has its folder, counts and manifest.
    pub fn writer(&mut self) -> &mut SessionWriter {
        &mut self.writer
    }

    /// Returns the manifest for a change, which the next flush saves.
    pub fn changed_manifest(&mut self) -> &mut Manifest {
        self.saved = None;
        self.writer.manifest_mut()
    }

    /// Adds an image of a file that a recorded process has named, if there is space.
    fn list_image(&mut self, image: SessionImage) {
        if self.room.take(&image.path, &image.build_id) {
            self.add_image(image);
        }
    }

    fn add_image(&mut self, image: SessionImage) {
        self.writer.manifest_mut().images.push(image);
        self.saved = None;
    }

    /// Writes the mapping of the kernel's own code, which perf needs to find its names.
    fn kernel_mapping(&mut self) -> Result<(), RecorderError> {
        let Some(text) = self.kernel.as_ref().and_then(Kernel::text) else {
            return Ok(());
        };
        self.write(&SessionRecord::Mapping(MappingRecord {
            time: MonotonicNs::ZERO,
            pid: Pid::KERNEL,
            tid: Tid::new(0),
            start: Address::new(text.range.start),
            len: text.range.end.saturating_sub(text.range.start),
            pgoff: text.range.start,
            kernel: true,
            mode: None,
            path: format!("[kernel.kallsyms]{}", text.symbol).into(),
            build_id: varid_recording::host::kernel_build_id(),
        }))
    }

    /// Writes a record other than a sample.
    pub fn write(&mut self, record: &SessionRecord) -> Result<(), RecorderError> {
        self.writer.add(record);
        self.flush_if_due()
    }

    /// Writes the records that wait, if there are enough of them. Names that they refer to come first: a kill leaves no record without
    /// its names.
    fn flush_if_due(&mut self) -> Result<(), RecorderError> {
        if !self.writer.is_due() {
            return Ok(());
        }
        let named = self.write_remap_names();
        if let Err(error) = named.and_then(|()| self.flush_compiled_code()) {
            self.writer.defer();
            return Err(error);
        }
        Ok(self.writer.flush()?)
    }

    /// Writes a sample of a process, preceded by the data that names its addresses. `known`: which addresses of its callchain are
    /// in an earlier sample and already have names. `written`: the mappings in the recording.
    pub fn sample(
        &mut self,
        sample: &Sample<&[Address]>,
        known: &Range<usize>,
        managed: &mut ManagedProcess,
        written: &mut Written,
    ) -> Result<(), RecorderError> {
        let named = self.name_frames(sample, known, managed, written);
        // A sample without names is still written.
        self.named_sample(sample)?;
        named
    }

    /// Writes a sample whose addresses have names.
    pub fn named_sample(&mut self, sample: &Sample<&[Address]>) -> Result<(), RecorderError> {
        if let Some(kernel) = self.kernel.as_mut().filter(|_| !sample.kernel.is_empty()) {
            kernel.sampled(sample.kernel);
        }
        self.writer.add_sample(sample);
        self.flush_if_due()
    }

    /// Writes the data that names the addresses that are not `known`.
    fn name_frames(
        &mut self,
        sample: &Sample<&[Address]>,
        known: &Range<usize>,
        managed: &mut ManagedProcess,
        written: &mut Written,
    ) -> Result<(), RecorderError> {
        let mut named = Ok(());
        let (inner, rest) = sample
            .user
            .split_at_checked(known.start)
            .unwrap_or_default();
        let behind = rest.get(known.len()..).unwrap_or_default();
        for (depth, address) in inner.iter().chain(behind).enumerate() {
            let frame = FrameAddress::in_callchain(depth, *address);
            let address = frame.lookup();
            if !is_recorded(address, managed, written) {
                named = named.and(self.mapping_of(address, sample, managed, written));
            }
        }
        if named.is_err() {
            managed.invalidate_callchains();
        }
        named
    }

    /// Writes the data that names an address of a process from a time on.
    pub fn name(
        &mut self,
        address: Address,
        time: MonotonicNs,
        managed: &mut ManagedProcess,
        written: &mut Written,
    ) -> Result<(), RecorderError> {
        if is_recorded(address, managed, written) {
            return Ok(());
        }
        let at = Sample::<&[Address]> {
            event: 0,
            time,
            pid: managed.process.pid,
            tid: managed.process.pid.main_thread(),
            cpu: 0,
            period: Period::new(0),
            original_ip: address,
            interrupt: None,
            mode: CpuMode::User,
            uid: managed.process.status.uid.unwrap_or(NO_UID),
            frame: None,
            precision: Precision::Exact,
            kernel: &[],
            user: &[],
        };
        self.mapping_of(address, &at, managed, written)
    }

    fn mapping_of(
        &mut self,
        address: Address,
        sample: &Sample<&[Address]>,
        managed: &mut ManagedProcess,
        written: &mut Written,
    ) -> Result<(), RecorderError> {
        if varid_recording::remap::contains(address) {
            return self.remap_mapping(address, sample, managed.space(), written);
        }
        let Some(mapped) = managed.process.space.at(address.get()) else {
            return Ok(());
        };
        if matches!(&mapped.image, ProcessImage::Other(path) if is_own_memory(path)) {
            return self.jit_mapping(address, sample, managed, written);
        }
        if written.has(mapped.id) {
            return Ok(());
        }
        let (path, build_id) = match &mapped.image {
            ProcessImage::Elf(elf) => (self.path_of(elf, managed)?, elf.build_id().to_vec()),
            ProcessImage::Code(dex) => (self.substitute(dex)?, dex.build_id.to_vec()),
            ProcessImage::Other(path) => (path.to_path_buf(), Vec::new()),
        };
        let id = mapped.id;
        let (start, pgoff, mode) = (mapped.start, mapped.pgoff, mapped.mode);
        let len = mapped.end.saturating_sub(start);
        let mapping = MappingRecord {
            time: sample.time,
            pid: sample.pid,
            tid: sample.tid,
            start: Address::new(start),
            len,
            pgoff,
            kernel: false,
            mode,
            path,
            build_id,
        };
        self.write(&SessionRecord::Mapping(mapping))?;
        written.add(id);
        Ok(())
    }

    fn remap_mapping(
        &mut self,
        address: Address,
        sample: &Sample<&[Address]>,
        space: &AddressSpace,
        written: &mut Written,
    ) -> Result<(), RecorderError> {
        let Some(part) = self.remap.part_at(address.get()) else {
            return Ok(());
        };
        let file = part.file;
        if written.has_part(file, space) {
            return Ok(());
        }
        let mapping = MappingRecord {
            time: sample.time,
            pid: sample.pid,
            tid: sample.tid,
            start: Address::new(part.range.start),
            len: part.range.end.saturating_sub(part.range.start),
            pgoff: varid_recording::remap::FILE_OFFSET,
            kernel: false,
            mode: None,
            path: symbols::absolute(&self.writer.symbols().join(file)),
            build_id: part.build_id.to_vec(),
        };
        let image = SessionImage {
            path: file.to_owned(),
            build_id: hex(&part.build_id),
            kind: ImageKind::Remap,
            layer: part.layer,
            substitute: Some(format!("symbols/{file}")),
            location: None,
        };
        if !self.writer.manifest_mut().images.contains(&image) {
            self.add_image(image);
        }
        self.write(&SessionRecord::Mapping(mapping))?;
        written.add_part(file, space);
        Ok(())
    }

    /// Writes all buffered data to the disk.
    pub fn flush(&mut self) -> Result<(), RecorderError> {
        self.write_names()?;
        self.flush_compiled_code()?;
        self.writer.flush()?;
        if self
            .saved
            .is_none_or(|saved| saved.elapsed() >= MANIFEST_AGE)
        {
            self.writer.save_manifest()?;
            self.saved = Some(Instant::now());
        }
        Ok(())
    }

    /// Completes the recording.
    pub fn finish(&mut self) -> Result<(), RecorderError> {
        if let Some(kernel) = &mut self.kernel {
            kernel.reread();
        }
        let named = self.write_names();
        let kept = self.flush_compiled_code();
        self.complete_remap_files();
        self.keep_moved_files();
        self.writer.finish()?;
        // Finishing frees the space reserved for the end, which may suffice for the remaining names.
        named.or_else(|_| self.write_names())?;
        kept.or_else(|_| self.flush_compiled_code())
    }
}

/// Returns true if the recording has the mapping of an address. Each sample in generated code is reported, so that its names are
/// read.
fn is_recorded(address: Address, managed: &ManagedProcess, written: &Written) -> bool {
    let known = |mapped: &ProcessMapping| {
        written.has(mapped.id) && !matches!(mapped.image, ProcessImage::Other(_))
    };
    !varid_recording::remap::contains(address)
        && managed.process.space.at(address.get()).is_some_and(known)
}

#[cfg(test)]
mod tests;
