//! What goes to disk: records in order, and the symbols they need before them.

use super::kernel::Kernel;
use super::vdso::Vdso;
use crate::attribution::{Attributed, FILE_OFFSET, RemapTable, random_build_id};
use crate::paths;
use crate::process::{DexImage, ElfImage, Image, JitFile, Mapped, Process, hex, is_own_memory};
use std::collections::HashSet;
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use thiserror::Error;
use varid_recording::{
    Image as ManifestImage, ImageKind, Layer, Manifest, Mapping, Record, Sample, SessionWriter,
};
use varid_symbolizer::substitute::{Cache, Substitute, write_sym};

/// Name of the paper's text form of all methods.
const SUBSTITUTE_SYM: &str = "substitute.sym";
/// Name of the folder of substitutes among what can be made anew, and the most bytes that they take.
const CACHE: &str = "substitutes";
const CACHE_LIMIT: u64 = 512 << 20;
/// Name of the kernel's symbols as far as they were sampled.
const KERNEL_SYM: &str = "kernel.sym";
/// How old the counts may be that the manifest of a live session tells.
const COUNTS: Duration = Duration::from_secs(5);

/// Why something could not be recorded.
#[derive(Debug, Error)]
pub enum RecorderError {
    /// The session's folder or files.
    #[error(transparent)]
    Recording(#[from] varid_recording::Error),
    /// A symbol file.
    #[error(transparent)]
    Symbols(#[from] varid_symbolizer::Error),
    /// A file of the session.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl RecorderError {
    /// Whether the storage has no room.
    pub fn is_full(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let kind = error.downcast_ref().map(std::io::Error::kind);
            if matches!(
                kind,
                Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            ) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

/// Writes a session.
#[derive(Debug)]
pub struct Recorder {
    writer: SessionWriter,
    /// Slots for methods without bytecode.
    pub remap: RemapTable,
    /// The last sample's frames, and memory for the next one's.
    pub attributed: Attributed,
    kernel: Option<Kernel>,
    vdso: Vdso,
    vm_paths: HashSet<std::path::PathBuf>,
    /// Dex files whose substitutes are in the session.
    dexes: HashSet<[u8; 20]>,
    /// Substitutes of dex files that were seen before.
    cache: Option<Cache>,
    /// When the manifest was saved; None: it does not tell of all images yet.
    saved: Option<Instant>,
}

impl Recorder {
    /// Starts the session in `dir`.
    pub fn create(dir: &Path, manifest: Manifest) -> Result<Self, RecorderError> {
        let writer = SessionWriter::create(dir, manifest)?;
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
            attributed: Attributed::default(),
            kernel,
            vdso: Vdso::own(),
            vm_paths: HashSet::new(),
            dexes: HashSet::new(),
            cache: substitutes(),
            saved: None,
        };
        recorder.kernel_mapping()?;
        recorder.flush()?;
        Ok(recorder)
    }

    /// The session's writer, for its folder, counts and manifest.
    pub fn writer(&mut self) -> &mut SessionWriter {
        &mut self.writer
    }

    fn add_image(&mut self, image: ManifestImage) {
        self.writer.manifest_mut().images.push(image);
        self.saved = None;
    }

    /// The kernel's own code is a mapping, too: perf finds its names by it.
    fn kernel_mapping(&mut self) -> Result<(), RecorderError> {
        let Some(text) = self.kernel.as_ref().and_then(Kernel::text) else {
            return Ok(());
        };
        self.writer.write(&Record::Mapping(Mapping {
            time: 0,
            pid: u32::MAX,
            tid: 0,
            start: text.range.start,
            len: text.range.end.saturating_sub(text.range.start),
            pgoff: text.range.start,
            kernel: true,
            path: format!("[kernel.kallsyms]{}", text.symbol).into(),
            build_id: varid_recording::host::kernel_build_id(),
        }))?;
        Ok(())
    }

    /// A record that is no sample.
    pub fn write(&mut self, record: &Record) -> Result<(), RecorderError> {
        Ok(self.writer.write(record)?)
    }

    /// A sample of a process, after everything that gives its addresses names.
    /// `known`: which of its addresses stand for frames of an earlier one, and have their names.
    pub fn sample(
        &mut self,
        sample: &Sample,
        known: &Range<usize>,
        process: &mut Process,
    ) -> Result<(), RecorderError> {
        let mut named = Ok(());
        let (inner, rest) = sample
            .user
            .split_at_checked(known.start)
            .unwrap_or_default();
        let behind = rest.get(known.len()..).unwrap_or_default();
        for (depth, address) in inner.iter().chain(behind).enumerate() {
            // A caller's address may lie behind the mapping's last byte.
            let address = if depth == 0 {
                *address
            } else {
                address.saturating_sub(1)
            };
            if !is_recorded(address, process) {
                named = named.and(self.mapping_of(address, sample, process));
            }
        }
        if named.is_err() {
            process.callers.clear();
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.sampled(&sample.kernel);
        }
        // A sample without a name is still a sample.
        self.writer.write_sample(sample)?;
        named
    }

    fn mapping_of(
        &mut self,
        address: u64,
        sample: &Sample,
        process: &mut Process,
    ) -> Result<(), RecorderError> {
        if varid_recording::remap::contains(address) {
            return self.remap_mapping(address, sample, process);
        }
        let Some(mapped) = process.space.at(address) else {
            return Ok(());
        };
        if matches!(&mapped.image, Image::Other(path) if is_own_memory(path)) {
            return self.own_code(address, sample, process);
        }
        if mapped.recorded {
            return Ok(());
        }
        let (path, build_id) = match &mapped.image {
            Image::Elf(elf) => {
                let elf = elf.clone();
                (self.path_of(&elf)?, elf.build_id().to_vec())
            }
            Image::Dex(dex) => {
                let dex = dex.clone();
                (self.substitute(&dex)?, dex.build_id.to_vec())
            }
            Image::Other(path) => (path.to_path_buf(), Vec::new()),
        };
        if let Image::Elf(elf) = &mapped.image {
            let elf = elf.clone();
            self.note_vm(&elf, process);
        }
        let Some(mapped) = process.space.at_mut(address) else {
            return Ok(());
        };
        mapped.recorded = true;
        let (start, pgoff) = (mapped.start, mapped.pgoff);
        let len = mapped.end.saturating_sub(start);
        let mapping = Mapping {
            time: sample.time,
            pid: sample.pid,
            tid: sample.tid,
            start,
            len,
            pgoff,
            kernel: false,
            path,
            build_id,
        };
        Ok(self.writer.write(&Record::Mapping(mapping))?)
    }

    fn remap_mapping(
        &mut self,
        address: u64,
        sample: &Sample,
        process: &mut Process,
    ) -> Result<(), RecorderError> {
        let Some(part) = self.remap.part_at(address) else {
            return Ok(());
        };
        let recorded = process.remap_recorded.contains(&part.file);
        if recorded && !part.is_changed() {
            return Ok(());
        }
        let symbols = self.writer.symbols();
        part.write_if_changed(&symbols)?;
        if recorded {
            return Ok(());
        }
        process.remap_recorded.push(part.file);
        let mapping = Mapping {
            time: sample.time,
            pid: sample.pid,
            tid: sample.tid,
            start: part.range.start,
            len: part.range.end.saturating_sub(part.range.start),
            pgoff: FILE_OFFSET,
            kernel: false,
            path: absolute(&symbols.join(part.file)),
            build_id: part.build_id.to_vec(),
        };
        let image = ManifestImage {
            path: part.file.to_owned(),
            build_id: hex(&part.build_id),
            kind: ImageKind::Remap,
            layer: part.layer,
            substitute: Some(format!("symbols/{}", part.file)),
            location: None,
        };
        if !self.writer.manifest_mut().images.contains(&image) {
            self.add_image(image);
        }
        Ok(self.writer.write(&Record::Mapping(mapping))?)
    }

    /// Where an ELF file's symbols are: the kernel's code in the process is kept, because it
    /// is in no file.
    fn path_of(&mut self, elf: &ElfImage) -> Result<PathBuf, RecorderError> {
        let build_id = hex(elf.build_id());
        if elf.memory().is_empty() || build_id.is_empty() {
            return Ok(elf.path.clone());
        }
        let (name, bytes) = self.vdso.file(elf);
        let path = self.writer.symbols().join(&name);
        let image = ManifestImage {
            path: elf.path.to_string_lossy().into_owned(),
            build_id,
            kind: ImageKind::Elf,
            layer: Layer::Native,
            substitute: Some(format!("symbols/{name}")),
            location: None,
        };
        if !self.writer.manifest_mut().images.contains(&image) {
            replace(&path, bytes).map_err(|source| RecorderError::Io {
                path: path.clone(),
                source,
            })?;
            self.add_image(image);
        }
        Ok(absolute(&path))
    }

    /// Code that the process has made: named by a file of its own, as soon as it says names.
    fn own_code(
        &mut self,
        address: u64,
        sample: &Sample,
        process: &mut Process,
    ) -> Result<(), RecorderError> {
        if let Some(mapped) = process.space.at(address).filter(|mapped| !mapped.recorded) {
            let (start, end, image) = (mapped.start, mapped.end, mapped.image.clone());
            let Some((range, pgoff)) = process.jit.area(address, &(start..end)) else {
                return Ok(());
            };
            let file = self.jit_file(process)?;
            process.space.insert(Mapped {
                start: range.start,
                end: range.end,
                pgoff,
                image,
                recorded: true,
            });
            self.writer.write(&Record::Mapping(Mapping {
                time: sample.time,
                pid: sample.pid,
                tid: sample.tid,
                start: range.start,
                len: range.end.saturating_sub(range.start),
                pgoff,
                kernel: false,
                path: absolute(&self.writer.symbols().join(&file.name)),
                build_id: file.build_id.to_vec(),
            }))?;
        }
        process.jit.sampled(address, sample.time);
        Ok(())
    }

    /// The file of a process's own code; the manifest knows it from the first sample on.
    fn jit_file(&mut self, process: &mut Process) -> Result<JitFile, RecorderError> {
        if let Some(known) = &process.jit.file {
            return Ok(known.clone());
        }
        let images = &self.writer.manifest_mut().images;
        // A process that has become another program makes other code.
        let taken = |name: &str| {
            let relative = Some(format!("symbols/{name}"));
            images.iter().any(|image| image.substitute == relative)
        };
        let name = (0u32..)
            .map(|again| match again {
                0 => format!("jit-{}.elf", process.pid),
                again => format!("jit-{}.{again}.elf", process.pid),
            })
            .find(|name| !taken(name))
            .unwrap_or_default();
        let build_id = random_build_id().map_err(|source| RecorderError::Io {
            path: "/dev/urandom".into(),
            source,
        })?;
        let file = JitFile { name, build_id };
        self.add_image(ManifestImage {
            path: "//anon".to_owned(),
            build_id: hex(&build_id),
            kind: ImageKind::Remap,
            layer: Layer::Native,
            substitute: Some(format!("symbols/{}", file.name)),
            location: None,
        });
        process.jit.file = Some(file.clone());
        Ok(file)
    }

    /// Writes down what is new about the code that a process has made, at the `last` whatever
    /// that costs.
    pub fn keep_code(&mut self, process: &mut Process, last: bool) -> Result<(), RecorderError> {
        let started = Instant::now();
        let Some((file, (slots, length))) = process.jit.file.clone().zip(process.jit.changes(last))
        else {
            return Ok(());
        };
        let relative = Some(format!("symbols/{}", file.name));
        let mut images = self.writer.manifest_mut().images.iter_mut();
        if let Some(image) = images
            .find(|image| image.substitute == relative)
            .filter(|_| !slots.is_empty())
        {
            // What has names is a program's code, not any memory.
            (image.path, image.layer) = ("[jit]".to_owned(), Layer::App);
            self.saved = None;
        }
        let path = self.writer.symbols().join(&file.name);
        let written = Substitute::remap(slots, length, &file.build_id)
            .and_then(|substitute| substitute.write(&path));
        process.jit.written(started.elapsed(), written.is_err());
        Ok(written?)
    }

    /// The substitute ELF file of a dex file, written when the dex is first sampled.
    fn substitute(&mut self, dex: &Rc<DexImage>) -> Result<std::path::PathBuf, RecorderError> {
        let name = format!("{}.elf", hex(&dex.build_id));
        let path = self.writer.symbols().join(&name);
        if !self.dexes.contains(&dex.build_id) {
            let sym = format!("{}.{SUBSTITUTE_SYM}", hex(&dex.build_id));
            let sym = self.writer.symbols().join(sym);
            match &self.cache {
                Some(cache) => {
                    let provided = cache.provide(&dex.dex, &dex.build_id, &path, &sym)?;
                    if let Some(error) = provided.not_kept {
                        tracing::warn!("the next session will write {name} anew: {error}");
                    }
                }
                None => {
                    Substitute::of_dex(&dex.dex)?.write(&path)?;
                    write_sym(&dex.dex, &sym)?;
                }
            }
            self.dexes.insert(dex.build_id);
            self.add_image(ManifestImage {
                path: dex.path.to_string_lossy().into_owned(),
                build_id: hex(&dex.build_id),
                kind: ImageKind::Dex,
                layer: dex.layer.get(),
                substitute: Some(format!("symbols/{name}")),
                location: None,
            });
        }
        Ok(absolute(&path))
    }

    /// Libraries of the VM have a layer of their own.
    fn note_vm(&mut self, elf: &ElfImage, process: &Process) {
        let is_vm = process
            .vm_directory()
            .is_some_and(|dir| elf.path.parent() == Some(dir.as_path()))
            || process.is_vm_image(elf);
        if is_vm && self.vm_paths.insert(elf.path.clone()) {
            self.add_image(ManifestImage {
                path: elf.path.to_string_lossy().into_owned(),
                build_id: hex(elf.build_id()),
                kind: ImageKind::Elf,
                layer: Layer::Vm,
                substitute: None,
                location: None,
            });
        }
    }

    /// Everything so far is on disk and readable afterwards.
    pub fn flush(&mut self) -> Result<(), RecorderError> {
        self.write_names()?;
        self.writer.flush()?;
        if self.saved.is_none_or(|saved| saved.elapsed() >= COUNTS) {
            self.writer.save_manifest()?;
            self.saved = Some(Instant::now());
        }
        Ok(())
    }

    /// The names of what was sampled of the kernel and in the remap range.
    fn write_names(&mut self) -> Result<(), RecorderError> {
        if let Some(kernel) = &mut self.kernel
            && let Some(text) = kernel.news()
        {
            let path = self.writer.symbols().join(KERNEL_SYM);
            replace(&path, &text).map_err(|source| {
                kernel.not_written();
                RecorderError::Io { path, source }
            })?;
        }
        let symbols = self.writer.symbols();
        self.remap
            .parts()
            .iter_mut()
            .try_for_each(|part| part.write_if_changed(&symbols))?;
        Ok(())
    }

    /// The last flush: the session is complete.
    pub fn finish(&mut self) -> Result<(), RecorderError> {
        if let Some(kernel) = &mut self.kernel {
            kernel.look_again();
        }
        let named = self.write_names();
        self.writer.finish()?;
        // Where there was no room for names, there is what was kept for the end.
        named.or_else(|_| self.write_names())
    }
}

/// The recording has the mapping of an address. Of a process's own code it keeps every sample's.
fn is_recorded(address: u64, process: &Process) -> bool {
    let known = |mapped: &Mapped| mapped.recorded && !matches!(mapped.image, Image::Other(_));
    !varid_recording::remap::contains(address) && process.space.at(address).is_some_and(known)
}

/// The user's own substitutes.
fn substitutes() -> Option<Cache> {
    let owner = nix::unistd::geteuid().as_raw();
    Cache::open(&paths::cache().join(CACHE), owner, CACHE_LIMIT)
        .inspect_err(|error| tracing::warn!("substitutes are written anew each time: {error}"))
        .ok()
}

/// A reader sees the old file or the new one.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    // Nobody else writes into it, whatever the umask.
    let options = options.write(true).create(true).truncate(true).mode(0o644);
    options.open(&new)?.write_all(bytes)?;
    std::fs::rename(&new, path)
}

fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
