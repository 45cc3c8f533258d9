//! Of which ELF files does the session keep the symbols?
//!
//! Reports find a file by its path. Where the path does not lead varid to the file that is mapped (another mount namespace, a file that was
//! deleted or replaced, memory) nobody will find it later, so the session keeps its symbols. That is known when the file is first sampled, and
//! the mapping is recorded as one of the session's file; a path that leads elsewhere at the end only is noted in the manifest.

use super::RecorderError;
use crate::request::KeepSymbols;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use varid_model::Pid;
use varid_process::{ElfImage, FilePlace};
use varid_recording::{KeptFile, SessionWriter};
use varid_symbolizer::elf::SymbolFileLimits;
use varid_symbolizer::hex;

/// Files that are looked at. Further ones have their own paths.
const MAX_FILES: usize = 1 << 14;

/// How much is kept, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Of one file.
    file: SymbolFileLimits,
    /// Of all together.
    session: u64,
}

impl Limits {
    const fn of(kept: KeepSymbols) -> Self {
        let (names, debug, session) = match kept {
            KeepSymbols::OfUnreachable => (64 << 20, 16 << 20, 256 << 20),
            KeepSymbols::OfAll => (256 << 20, 256 << 20, 2 << 30),
        };
        Self {
            file: SymbolFileLimits { names, debug },
            session,
        }
    }
}

/// The files whose symbols are kept.
#[derive(Debug, Default)]
pub struct KeptFiles {
    of: KeepSymbols,
    /// By the address of the image, which is of no other one while the weak reference stands.
    seen: HashMap<*const ElfImage, SeenFile>,
    /// Bytes that are kept.
    size: u64,
    /// Files of which not all that names addresses is kept.
    cut: usize,
    /// Files of which nothing is kept, though nobody will find them.
    lost: usize,
}

/// A file that was sampled.
#[derive(Debug)]
struct SeenFile {
    image: Weak<ElfImage>,
    /// A process that has it mapped.
    pid: Pid,
    recorded: RecordedAs,
}

/// The path by which mappings of a file are recorded.
#[derive(Debug)]
enum RecordedAs {
    /// The file's own.
    Original(FilePlace),
    /// That of the session's file, relative to the session.
    Kept(String),
    /// The file's own, which leads nobody to it.
    Lost,
}

impl KeptFiles {
    /// No files yet.
    pub fn new(of: KeepSymbols) -> Self {
        Self {
            of,
            ..Self::default()
        }
    }

    /// The session's file, relative to its folder, by which the mappings of a file are recorded, which a process has mapped; None: they have
    /// the file's own path.
    pub fn file_of(
        &mut self,
        elf: &Rc<ElfImage>,
        pid: Pid,
        writer: &SessionWriter,
    ) -> Result<Option<String>, RecorderError> {
        let key = Rc::as_ptr(elf);
        if let Some(seen) = self.seen.get(&key) {
            return Ok(match &seen.recorded {
                RecordedAs::Kept(file) => Some(file.clone()),
                RecordedAs::Original(_) | RecordedAs::Lost => None,
            });
        }
        let Some(place) = elf.place().filter(|_| self.seen.len() < MAX_FILES) else {
            return Ok(None);
        };
        let (recorded, kept) = match place.leads_to_file(pid) {
            true => (RecordedAs::Original(place), Ok(None)),
            false => match self.keep(elf, writer) {
                Ok(Some(file)) => (RecordedAs::Kept(file.clone()), Ok(Some(file))),
                other => (RecordedAs::Lost, other),
            },
        };
        let seen = SeenFile {
            image: Rc::downgrade(elf),
            pid,
            recorded,
        };
        self.seen.insert(key, seen);
        kept
    }

    /// The session ends: keeps the symbols of the files that are no longer at their paths, or of all. What the manifest says of them, and a
    /// note on what is missing.
    pub fn finish(&mut self, writer: &SessionWriter) -> (Vec<KeptFile>, Option<String>) {
        let mut kept = Vec::new();
        for seen in std::mem::take(&mut self.seen).into_values() {
            let RecordedAs::Original(place) = &seen.recorded else {
                continue;
            };
            let is_there = place.leads_to_file(seen.pid);
            if is_there && self.of == KeepSymbols::OfUnreachable {
                continue;
            }
            let Some(image) = seen.image.upgrade() else {
                // It was closed to open others.
                self.lost = self.lost.saturating_add(usize::from(!is_there));
                continue;
            };
            // What was recorded has the room that is left on the disk.
            let file = self
                .keep(&image, writer)
                .unwrap_or_else(|error| self.lose(&error));
            kept.extend(file.map(|file| KeptFile {
                path: image.path.to_string_lossy().into_owned(),
                build_id: hex(image.build_id()),
                file,
            }));
        }
        kept.sort_by(|one, other| (&one.path, &one.file).cmp(&(&other.path, &other.file)));
        (kept, self.note())
    }

    /// Keeps the symbols of a file. None: they cannot be kept.
    fn keep(
        &mut self,
        elf: &ElfImage,
        writer: &SessionWriter,
    ) -> Result<Option<String>, RecorderError> {
        let Limits { file, session } = Limits::of(self.of);
        let left = session.saturating_sub(self.size);
        let names = file.names.min(left);
        let debug = file.debug.min(left.saturating_sub(names));
        let part = match elf.symbol_file(SymbolFileLimits { names, debug }) {
            Ok(part) => part,
            Err(error) => return Ok(self.lose(&error)),
        };
        let written = writer.keep_file(&elf.path, |out| Ok::<(), RecorderError>(part.write(out)?));
        match written {
            Ok((file, size)) => {
                self.size = self.size.saturating_add(size);
                self.cut = self.cut.saturating_add(usize::from(part.is_cut()));
                Ok(Some(file))
            }
            Err(error) if error.is_full() => Err(error),
            Err(error) => Ok(self.lose(&error)),
        }
    }

    fn lose(&mut self, error: &dyn std::error::Error) -> Option<String> {
        tracing::debug!("symbols that are not kept: {error}");
        self.lost = self.lost.saturating_add(1);
        None
    }

    fn note(&self) -> Option<String> {
        let Self { cut, lost, .. } = self;
        let missing = match (cut, lost) {
            (0, 0) => return None,
            (0, _) => format!("nothing of {lost}"),
            (_, 0) => format!("not all of {cut}"),
            _ => format!("nothing of {lost}, and not all of {cut}"),
        };
        Some(format!(
            "of the mapped files whose symbols the session is to keep, it has {missing}: they are too large, or cannot be read"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};
    use varid_model::{Device, Mode, MonotonicNs, Rate};
    use varid_process::{Images, KernelMapping, Process, ProcessImage};
    use varid_recording::{EventDesc, Manifest, SampleSource, SessionTarget, TargetKind};
    use varid_symbolizer::elf::ElfSymbols;

    /// A session, and beside it a copy of this program that has been looked at.
    struct Scene {
        _folder: tempfile::TempDir,
        path: PathBuf,
        image: Rc<ElfImage>,
        writer: SessionWriter,
        pid: Pid,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("prog");
            std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
            let pid = Pid::new(std::process::id());
            let meta = path.metadata().unwrap();
            let mapped = KernelMapping {
                pid,
                start: 0x7000_0000,
                end: 0x7000_1000,
                pgoff: 0,
                device: Device::of_number(meta.dev()),
                inode: meta.ino(),
                mode: Mode {
                    read: true,
                    execute: true,
                    ..Mode::default()
                },
                path: &path,
            };
            let mut process = Process::new(pid);
            process.map(&mut Images::default(), &mapped);
            let ProcessImage::Elf(image) = &process.space.at(0x7000_0000).unwrap().image else {
                panic!("it is an ELF file")
            };
            let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
            let target = SessionTarget {
                kind: TargetKind::All,
                value: String::new(),
            };
            let manifest = Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::ZERO);
            let session = folder.path().join("session");
            Self {
                image: image.clone(),
                writer: SessionWriter::create(session, manifest).unwrap(),
                _folder: folder,
                path,
                pid,
            }
        }

        fn file_of(&self, files: &mut KeptFiles) -> Option<String> {
            files.file_of(&self.image, self.pid, &self.writer).unwrap()
        }

        /// How many functions the session's file names.
        fn names_in(&self, file: &str) -> usize {
            ElfSymbols::open(&self.writer.dir().join(file))
                .unwrap()
                .symbol_count()
        }
    }

    #[test]
    fn a_file_at_its_path_is_not_kept_unless_all_are() {
        let scene = Scene::new();
        let mut files = KeptFiles::default();
        assert_eq!(scene.file_of(&mut files), None);
        assert_eq!(files.finish(&scene.writer), (Vec::new(), None));
        let mut all = KeptFiles::new(KeepSymbols::OfAll);
        assert_eq!(scene.file_of(&mut all), None);
        let (kept, _) = all.finish(&scene.writer);
        assert_eq!(kept.len(), 1);
        assert_eq!(Path::new(&kept[0].path), scene.path);
        assert!(scene.names_in(&kept[0].file) > 100);
    }

    #[test]
    fn a_file_that_is_gone_when_it_is_first_sampled_is_mapped_as_the_sessions() {
        let scene = Scene::new();
        std::fs::remove_file(&scene.path).unwrap();
        let mut files = KeptFiles::default();
        let kept = scene.file_of(&mut files).unwrap();
        assert!(kept.starts_with("symbols/") && kept.ends_with("/prog"));
        assert!(scene.names_in(&kept) > 100);
        assert_eq!(scene.file_of(&mut files), Some(kept));
        assert_eq!(files.finish(&scene.writer).0, []);
    }

    #[test]
    fn a_file_that_is_replaced_later_is_kept_at_the_end() {
        let scene = Scene::new();
        let mut files = KeptFiles::default();
        assert_eq!(scene.file_of(&mut files), None);
        let other = scene.path.with_extension("other");
        std::fs::copy(&scene.path, &other).unwrap();
        std::fs::rename(&other, &scene.path).unwrap();
        let (kept, note) = files.finish(&scene.writer);
        assert_eq!((kept.len(), note), (1, None));
        assert_eq!(kept[0].build_id, hex(scene.image.build_id()));
        assert!(scene.names_in(&kept[0].file) > 100);
    }

    #[test]
    fn what_a_bound_leaves_out_is_noted() {
        let scene = Scene::new();
        std::fs::remove_file(&scene.path).unwrap();
        let mut files = KeptFiles {
            size: Limits::of(KeepSymbols::default()).session,
            ..KeptFiles::default()
        };
        let kept = scene.file_of(&mut files).unwrap();
        assert_eq!(scene.names_in(&kept), 0);
        let (_, note) = files.finish(&scene.writer);
        assert!(note.unwrap().contains("it has not all of 1:"));
    }
}
