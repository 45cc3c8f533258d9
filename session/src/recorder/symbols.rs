//! Writes the files beside perf.data that name its addresses: copies, substitutes, and names of generated code.

use super::{Recorder, RecorderError, Written, class_path};
use crate::kernel::SymbolUpdate;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;
use varid_model::{Address, Layer, Pid};
use varid_process::{CodeImage, ElfImage, JitFile, MappingId, ProcessMapping};
use varid_recording::{
    ImageKind, MappingRecord, RecordedFile, Sample, SessionImage, SessionRecord,
};
use varid_symbolizer::hex;
use varid_symbolizer::substitute::{Cache, Substitute, write_sym};
use varid_vm::ManagedProcess;
use varid_vm::attribution::random_build_id;

/// Name of the paper's text format for all methods.
const SUBSTITUTE_SYM: &str = "substitute.sym";
/// Name of the folder of substitutes in the cache, and their maximum size in bytes.
const CACHE: &str = "substitutes";
const CACHE_LIMIT: u64 = 512 << 20;
/// Maximum number of files without a build-id in the manifest.
const MAX_FILES: usize = 1 << 12;
/// Name of HotSpot's library.
const HOTSPOT: &str = "libjvm.so";
/// Name of the file with the sampled symbols of the kernel.
const KERNEL_SYM: &str = "kernel.sym";

impl Recorder {
    /// Returns the path that is recorded for a mapping of an ELF file: the file's own, or that of the session's file if the original cannot
    /// be found later.
    pub(super) fn path_of(
        &mut self,
        elf: &Rc<ElfImage>,
        managed: &ManagedProcess,
    ) -> Result<PathBuf, RecorderError> {
        if !elf.memory().is_empty() && !elf.build_id().is_empty() {
            return self.vdso_path(elf);
        }
        let layer = match is_of_vm(elf, managed) {
            true => Layer::Vm,
            false => Layer::Native,
        };
        if layer == Layer::Vm && elf.path.ends_with(HOTSPOT) {
            self.note_class_path(managed.process.pid);
        }
        let kept = self.kept.file_of(elf, managed.process.pid, &self.writer);
        let Some(file) = kept else {
            self.note_file(elf);
            self.note_vm(elf, layer);
            return Ok(elf.path.clone());
        };
        let path = self.writer.dir().join(&file);
        let known = Some(&file);
        let images = &self.writer.manifest_mut().images;
        if !images
            .iter()
            .any(|image| image.substitute.as_ref() == known)
        {
            self.list_image(SessionImage {
                path: elf.path.to_string_lossy().into_owned(),
                build_id: hex(elf.build_id()),
                kind: ImageKind::Elf,
                layer,
                substitute: Some(file),
                location: None,
            });
        }
        Ok(absolute(&path))
    }

    /// Returns the path of the session's copy of a vDSO, which is not in any file.
    fn vdso_path(&mut self, elf: &ElfImage) -> Result<PathBuf, RecorderError> {
        let (name, bytes) = self.vdso.file(elf);
        let path = self.writer.symbols().join(&name);
        let image = SessionImage {
            path: elf.path.to_string_lossy().into_owned(),
            build_id: hex(elf.build_id()),
            kind: ImageKind::Elf,
            layer: Layer::Native,
            substitute: Some(format!("symbols/{name}")),
            location: None,
        };
        if !self.writer.manifest_mut().images.contains(&image) {
            let here = self.writer.symbols_here().join(&name);
            replace(&here, bytes).map_err(|source| RecorderError::Io {
                path: path.clone(),
                source,
            })?;
            self.add_image(image);
        }
        Ok(absolute(&path))
    }

    /// Keeps the symbols of files that are no longer at their paths.
    pub(super) fn keep_moved_files(&mut self) {
        let (kept, note) = self
            .kept
            .finish(&self.writer, varid_process::reader::waited);
        let room = &mut self.room;
        let listed = kept.into_iter();
        let listed = listed.filter(|kept| room.take(&kept.path, &kept.build_id));
        let manifest = self.writer.manifest_mut();
        manifest.kept.extend(listed);
        manifest.notes.extend(note.into_iter().chain(room.note()));
    }

    /// Records generated code of a process. Once the process publishes names, the code has a symbol file of its own.
    pub(super) fn jit_mapping(
        &mut self,
        address: Address,
        sample: &Sample<&[Address]>,
        managed: &mut ManagedProcess,
        written: &mut Written,
    ) -> Result<(), RecorderError> {
        if let Some(mapped) = managed
            .process
            .space
            .at(address.get())
            .filter(|mapped| !written.has(mapped.id))
        {
            let (start, end, image) = (mapped.start, mapped.end, mapped.image.clone());
            let mode = mapped.mode;
            let Some((range, pgoff)) = managed.process.jit.area(address.get(), &(start..end))
            else {
                return Ok(());
            };
            let file = self.jit_file(managed)?;
            managed.process.space.insert(ProcessMapping {
                start: range.start,
                end: range.end,
                pgoff,
                image,
                mode,
                id: MappingId::default(),
            });
            if let Some(area) = managed.space().at(range.start) {
                written.add(area.id);
            }
            self.write(&SessionRecord::Mapping(MappingRecord {
                time: sample.time,
                pid: sample.pid,
                tid: sample.tid,
                start: Address::new(range.start),
                len: range.end.saturating_sub(range.start),
                pgoff,
                kernel: false,
                mode,
                path: absolute(&self.writer.symbols().join(&file.name)),
                build_id: file.build_id.to_vec(),
            }))?;
        }
        managed.process.jit.add_sample(address, sample.time);
        Ok(())
    }

    /// Returns the symbol file of a process's generated code. The manifest lists it from the first sample on.
    fn jit_file(&mut self, managed: &mut ManagedProcess) -> Result<JitFile, RecorderError> {
        if let Some(known) = &managed.process.jit.file {
            return Ok(known.clone());
        }
        let images = &self.writer.manifest_mut().images;
        // After an exec, a process has another file.
        let taken = |name: &str| {
            let relative = Some(format!("symbols/{name}"));
            images.iter().any(|image| image.substitute == relative)
        };
        let name = (0u32..)
            .map(|number| match number {
                0 => format!("jit-{}.elf", managed.process.pid),
                number => format!("jit-{}.{number}.elf", managed.process.pid),
            })
            .find(|name| !taken(name))
            .unwrap_or_default();
        let build_id = random_build_id().map_err(|source| RecorderError::Io {
            path: "/dev/urandom".into(),
            source,
        })?;
        let file = JitFile { name, build_id };
        self.add_image(SessionImage {
            path: "//anon".to_owned(),
            build_id: hex(&build_id),
            kind: ImageKind::Remap,
            layer: Layer::Native,
            substitute: Some(format!("symbols/{}", file.name)),
            location: None,
        });
        managed.process.jit.file = Some(file.clone());
        Ok(file)
    }

    /// Writes new names of a process's generated code if due; at the `last` call in any case.
    pub fn write_jit_names(
        &mut self,
        managed: &mut ManagedProcess,
        last: bool,
    ) -> Result<(), RecorderError> {
        let started = Instant::now();
        let Some((file, (slots, length))) = managed
            .process
            .jit
            .file
            .clone()
            .zip(managed.process.jit.changes(last))
        else {
            return Ok(());
        };
        let relative = Some(format!("symbols/{}", file.name));
        let mut images = self.writer.manifest_mut().images.iter_mut();
        if let Some(image) = images
            .find(|image| image.substitute == relative)
            .filter(|_| !slots.is_empty())
        {
            // Memory with names is code of a program. Before, it may be any memory.
            (image.path, image.layer) = ("[jit]".to_owned(), Layer::App);
            self.saved = None;
        }
        let path = self.writer.symbols_here().join(&file.name);
        let written = Substitute::remap(slots, length, &file.build_id)
            .and_then(|substitute| substitute.write(&path));
        managed
            .process
            .jit
            .written(started.elapsed(), written.is_err());
        Ok(written?)
    }

    /// Returns the substitute ELF file of a dex file, which has the name of the first one with this content. It is written when the dex file
    /// is first sampled.
    pub(super) fn substitute(&mut self, dex: &Rc<CodeImage>) -> Result<PathBuf, RecorderError> {
        let name = match self.substitutes.get(&dex.build_id) {
            Some(name) => name.clone(),
            None => self.write_substitute(dex)?,
        };
        Ok(absolute(&self.writer.symbols().join(name)))
    }

    fn write_substitute(&mut self, dex: &CodeImage) -> Result<String, RecorderError> {
        let build_id = hex(&dex.build_id);
        let name = self.writer.symbol_file(&build_id, &dex.location())?;
        let here = self.writer.symbols_here();
        let elf = here.join(&name);
        let sym = here.join(format!("{build_id}.{SUBSTITUTE_SYM}"));
        let image = dex.bytecode.as_ref();
        match &self.cache {
            Some(cache) => {
                let provided = cache.provide(image, &elf, &sym)?;
                if let Some(error) = provided.not_stored {
                    tracing::warn!("the next session will write {name} anew: {error}");
                }
            }
            None => {
                Substitute::of_bytecode(image).write(&elf)?;
                write_sym(image, &sym)?;
            }
        }
        self.substitutes.insert(dex.build_id, name.clone());
        self.list_image(SessionImage {
            path: dex.path.to_string_lossy().into_owned(),
            build_id,
            kind: ImageKind::Dex,
            layer: dex.layer.get(),
            substitute: Some(format!("symbols/{name}")),
            location: None,
        });
        Ok(name)
    }

    /// Adds a file without a build-id to the manifest, because its path may lead to another file when the session is read.
    fn note_file(&mut self, elf: &ElfImage) {
        let files = &mut self.writer.manifest_mut().files;
        if !elf.build_id().is_empty() || files.len() >= MAX_FILES {
            return;
        }
        let path = elf.path.to_string_lossy().into_owned();
        let file = elf.metadata().map(|meta| {
            let (seconds, nanoseconds) = meta.changed();
            let version = (meta.len(), seconds, nanoseconds);
            RecordedFile::of_version(path, meta.ino(), version)
        });
        let room = &mut self.room;
        let mut is_listed =
            |file: &RecordedFile| !files.contains(file) && room.take(&file.path, "");
        if let Some(file) = file.filter(|file| is_listed(file)) {
            files.push(file);
            self.saved = None;
        }
    }

    /// Adds a VM's library to the manifest, because these have their own layer.
    fn note_vm(&mut self, elf: &ElfImage, layer: Layer) {
        if layer == Layer::Vm && self.noted.libraries.insert(elf.path.clone()) {
            self.list_image(SessionImage {
                path: elf.path.to_string_lossy().into_owned(),
                build_id: hex(elf.build_id()),
                kind: ImageKind::Elf,
                layer,
                substitute: None,
                location: None,
            });
        }
    }

    /// Adds the class path of a Java program to the manifest.
    fn note_class_path(&mut self, pid: Pid) {
        let noted = &mut self.noted.java;
        if noted.len() >= MAX_FILES || !noted.insert(pid) {
            return;
        }
        let room = &mut self.room;
        let known = &mut self.writer.manifest_mut().class_path;
        for entry in class_path::of_process(pid) {
            let entry = entry.to_string_lossy().into_owned();
            if known.len() < MAX_FILES && !known.contains(&entry) && room.take(&entry, "") {
                known.push(entry);
                self.saved = None;
            }
        }
    }

    /// Writes the names of sampled kernel functions and of the remap range.
    pub(super) fn write_names(&mut self) -> Result<(), RecorderError> {
        if let Some(kernel) = &mut self.kernel
            && let Some(update) = kernel.update()
        {
            let here = self.writer.symbols_here().join(KERNEL_SYM);
            let written = match update {
                SymbolUpdate::Replace(text) => replace(&here, &text),
                SymbolUpdate::Append(text) => append(&here, &text),
            };
            written.map_err(|source| {
                kernel.update_failed();
                let path = self.writer.symbols().join(KERNEL_SYM);
                RecorderError::Io { path, source }
            })?;
        }
        self.write_remap_names()
    }

    /// Writes the names of the remap range that its files do not have yet.
    pub fn write_remap_names(&mut self) -> Result<(), RecorderError> {
        let symbols = self.writer.symbols_here();
        let mut parts = self.remap.parts().iter_mut();
        Ok(parts.try_for_each(|part| part.write_names(&symbols))?)
    }

    /// Makes the files of the remap range smaller, to which no more names are added.
    pub(super) fn complete_remap_files(&mut self) {
        let symbols = self.writer.symbols_here();
        for part in self.remap.parts() {
            // The names are in the file, or the error was reported.
            if let Err(error) = part.complete(&symbols) {
                tracing::debug!("{} keeps its space for names: {error}", part.file);
            }
        }
    }
}

/// Returns true if an ELF file belongs to the VM of a process.
fn is_of_vm(elf: &ElfImage, managed: &ManagedProcess) -> bool {
    let directory = managed.vm_directory();
    directory.is_some_and(|dir| elf.path.parent() == Some(dir.as_path()))
        || managed.is_vm_image(elf)
}

/// Returns the user's cache of substitutes, below the folder `cache`.
pub(super) fn substitutes(cache: &Path) -> Option<Cache> {
    let owner = nix::unistd::geteuid().as_raw();
    Cache::open(&cache.join(CACHE), owner, CACHE_LIMIT)
        .inspect_err(|error| tracing::warn!("substitutes are written anew each time: {error}"))
        .ok()
}

/// Replaces a file atomically: a reader sees the old or the new one.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    // A failed write may have left this file.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => options.open(&new)?.write_all(bytes)?,
    }
    std::fs::rename(&new, path)
}

fn append(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(bytes)
}

pub(super) fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
