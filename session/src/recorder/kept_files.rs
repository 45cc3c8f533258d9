//! Of which ELF files does the session keep the symbols?
//!
//! Reports find a file by its path. Where the path does not lead varid to the file that is mapped (another mount namespace, a file that was
//! deleted or replaced, memory) nobody will find it later, so the session keeps its symbols. That is known when the file is first sampled, and
//! the mapping is recorded as one of the session's file; a path that leads elsewhere at the end only is noted in the manifest.

use super::RecorderError;
use crate::request::KeepSymbols;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::rc::{Rc, Weak};
use std::time::Duration;
use varid_model::Pid;
use varid_process::{ElfImage, FilePlace};
use varid_recording::{KeptFile, SessionWriter};
use varid_symbolizer::elf::SymbolFileLimits;
use varid_symbolizer::hex;

/// Files that are looked at. Further ones have their own paths.
const MAX_FILES: usize = 1 << 14;
/// Files of which something is kept.
const MAX_KEPT: usize = 1 << 12;
/// How many times the bytes of a session's limit are read and written: what they make may be kept already.
const COPIES: u64 = 2;
/// How long the end of a session waits for files, in all.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// How many files have been seen.
    sampled: u64,
    kept: Kept,
    missing: Missing,
}

/// What is kept.
#[derive(Debug, Default)]
struct Kept {
    files: usize,
    /// Bytes that the session has.
    bytes: u64,
    /// Bytes that were read and written for that, those of files that were kept already among them.
    copied: u64,
}

/// Files that are not kept as they should.
#[derive(Debug, Default)]
struct Missing {
    /// Of these not all that names addresses is kept.
    cut: usize,
    /// Of these nothing is kept, though nobody will find them.
    lost: usize,
    /// It is not known whether these can be found.
    unknown: usize,
}

/// A file that was sampled.
#[derive(Debug)]
struct SeenFile {
    /// Files are kept in the order in which they were sampled.
    number: u64,
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
    ) -> Option<String> {
        let key = Rc::as_ptr(elf);
        if let Some(seen) = self.seen.get(&key) {
            return match &seen.recorded {
                RecordedAs::Kept(file) => Some(file.clone()),
                RecordedAs::Original(_) | RecordedAs::Lost => None,
            };
        }
        let place = elf.place()?;
        if self.seen.len() >= MAX_FILES {
            self.forget_closed();
        }
        if self.seen.len() >= MAX_FILES {
            self.missing.unknown = self.missing.unknown.saturating_add(1);
            return None;
        }
        let (recorded, kept) = match place.leads_to_file(pid, Some(elf)) {
            true => (RecordedAs::Original(place), None),
            false => match self.keep(elf, writer) {
                Some(file) => (RecordedAs::Kept(file.clone()), Some(file)),
                None => (RecordedAs::Lost, None),
            },
        };
        let seen = SeenFile {
            number: self.sampled,
            image: Rc::downgrade(elf),
            pid,
            recorded,
        };
        self.sampled = self.sampled.saturating_add(1);
        self.seen.insert(key, seen);
        kept
    }

    /// Forgets the files that were closed to open others.
    fn forget_closed(&mut self) {
        let unknown = &mut self.missing.unknown;
        self.seen.retain(|_, seen| {
            let is_open = seen.image.strong_count() > 0;
            let is_at_its_path = matches!(seen.recorded, RecordedAs::Original(_));
            *unknown = unknown.saturating_add(usize::from(!is_open && is_at_its_path));
            is_open
        });
    }

    /// The session ends: keeps the symbols of the files that are no longer at their paths, or of all. What the manifest says of them, and a
    /// note on what is missing. `waited`: how long this thread has waited for files of processes.
    pub fn finish(
        &mut self,
        writer: &SessionWriter,
        waited: impl Fn() -> Duration,
    ) -> (Vec<KeptFile>, Option<String>) {
        let began = waited();
        let mut kept = Vec::new();
        let mut seen: Vec<SeenFile> = std::mem::take(&mut self.seen).into_values().collect();
        seen.sort_unstable_by_key(|seen| seen.number);
        for seen in seen {
            let RecordedAs::Original(place) = &seen.recorded else {
                continue;
            };
            if waited().saturating_sub(began) >= PATIENCE {
                self.missing.unknown = self.missing.unknown.saturating_add(1);
                continue;
            }
            let image = seen.image.upgrade();
            let is_there = place.leads_to_file(seen.pid, image.as_deref());
            if is_there && self.of == KeepSymbols::OfUnreachable {
                continue;
            }
            // It may have been closed to open others, or rewritten: then it has other symbols than the samples.
            let image = image.filter(|image| image.place().as_ref() == Some(place));
            let Some(image) = image else {
                self.lose("it has been closed or rewritten");
                continue;
            };
            kept.extend(self.keep(&image, writer).map(|file| KeptFile {
                path: image.path.to_string_lossy().into_owned(),
                build_id: hex(image.build_id()),
                file,
            }));
        }
        kept.sort_by(|one, other| (&one.path, &one.file).cmp(&(&other.path, &other.file)));
        (kept, self.missing.note())
    }

    /// Keeps the symbols of a file. None: they cannot be kept, which is counted.
    fn keep(&mut self, elf: &ElfImage, writer: &SessionWriter) -> Option<String> {
        if elf.contents().is_none() {
            return self.lose("its headers cannot be read");
        }
        if self.kept.files >= MAX_KEPT {
            return self.lose("no further files are kept");
        }
        let Limits { file, session } = Limits::of(self.of);
        let may_copy = session.saturating_mul(COPIES);
        let may_copy = may_copy.saturating_sub(self.kept.copied);
        let left = session.saturating_sub(self.kept.bytes).min(may_copy);
        let names = file.names.min(left);
        let debug = file.debug.min(left.saturating_sub(names));
        let part = match elf.symbol_file(SymbolFileLimits { names, debug }) {
            Ok(part) => part,
            Err(error) => return self.lose(error),
        };
        self.kept.copied = self.kept.copied.saturating_add(part.size());
        let file = self.write(&elf.path, writer, |out| Ok(part.write(out)?))?;
        self.missing.cut = self.missing.cut.saturating_add(usize::from(part.is_cut()));
        Some(file)
    }

    /// Writes what is kept of a file. That there is no room for it ends no recording: the samples may have some.
    fn write(
        &mut self,
        original: &Path,
        writer: &SessionWriter,
        write: impl FnOnce(&mut dyn Write) -> Result<(), RecorderError>,
    ) -> Option<String> {
        match writer.keep_file(original, write) {
            Ok((file, size)) => {
                self.kept.files = self.kept.files.saturating_add(1);
                self.kept.bytes = self.kept.bytes.saturating_add(size);
                Some(file)
            }
            Err(error) => self.lose(error),
        }
    }

    fn lose(&mut self, reason: impl Display) -> Option<String> {
        tracing::debug!("symbols that are not kept: {reason}");
        self.missing.lost = self.missing.lost.saturating_add(1);
        None
    }
}

impl Missing {
    fn note(&self) -> Option<String> {
        let counted = |what: &str, count: usize| (count > 0).then(|| format!("{what} {count}"));
        let missing = [
            counted("nothing of", self.lost),
            counted("not all of", self.cut),
            counted("perhaps nothing of", self.unknown),
        ];
        let missing: Vec<String> = missing.into_iter().flatten().collect();
        (!missing.is_empty()).then(|| {
            format!(
                "of the mapped files whose symbols the session is to keep, it has {}: they are too large or too many, or cannot be read or written",
                missing.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
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
            files.file_of(&self.image, self.pid, &self.writer)
        }

        fn finish(&self, files: &mut KeptFiles) -> (Vec<KeptFile>, Option<String>) {
            files.finish(&self.writer, || Duration::ZERO)
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
        assert_eq!(scene.finish(&mut files), (Vec::new(), None));
        let mut all = KeptFiles::new(KeepSymbols::OfAll);
        assert_eq!(scene.file_of(&mut all), None);
        let (kept, _) = scene.finish(&mut all);
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
        assert_eq!(scene.finish(&mut files).0, []);
    }

    #[test]
    fn a_file_that_is_replaced_later_is_kept_at_the_end() {
        let scene = Scene::new();
        let mut files = KeptFiles::default();
        assert_eq!(scene.file_of(&mut files), None);
        let other = scene.path.with_extension("other");
        std::fs::copy(&scene.path, &other).unwrap();
        std::fs::rename(&other, &scene.path).unwrap();
        let (kept, note) = scene.finish(&mut files);
        assert_eq!((kept.len(), note), (1, None));
        assert_eq!(kept[0].build_id, hex(scene.image.build_id()));
        assert!(scene.names_in(&kept[0].file) > 100);
    }

    #[test]
    fn a_file_that_is_rewritten_is_not_kept_as_what_it_was() {
        let scene = Scene::new();
        let mut files = KeptFiles::default();
        assert_eq!(scene.file_of(&mut files), None);
        let file = std::fs::OpenOptions::new().append(true).open(&scene.path);
        file.unwrap().write_all(b"later").unwrap();
        assert_lost(1, scene.finish(&mut files));
    }

    #[test]
    fn what_a_bound_leaves_out_is_noted() {
        let session = Limits::of(KeepSymbols::default()).session;
        let spent = |kept| KeptFiles {
            kept,
            ..KeptFiles::default()
        };
        for kept in [
            Kept {
                bytes: session,
                ..Kept::default()
            },
            Kept {
                copied: session * COPIES,
                ..Kept::default()
            },
            Kept {
                files: MAX_KEPT,
                ..Kept::default()
            },
        ] {
            let scene = Scene::new();
            std::fs::remove_file(&scene.path).unwrap();
            let mut files = spent(kept);
            assert_eq!(scene.file_of(&mut files), None);
            assert_lost(1, scene.finish(&mut files));
        }
        // There is room for the headers, and for few symbols.
        let scene = Scene::new();
        std::fs::remove_file(&scene.path).unwrap();
        let mut files = spent(Kept {
            bytes: session - (1 << 14),
            ..Kept::default()
        });
        let kept = scene.file_of(&mut files).unwrap();
        let meta = scene.writer.dir().join(kept).metadata().unwrap();
        assert!(meta.len() <= 1 << 14 && files.kept.bytes <= session);
        let (_, note) = scene.finish(&mut files);
        assert!(note.unwrap().contains("it has not all of 1:"));
    }

    #[test]
    fn a_copy_of_what_is_kept_counts_as_copied() {
        let scene = Scene::new();
        std::fs::remove_file(&scene.path).unwrap();
        let mut files = KeptFiles::default();
        let kept = scene.file_of(&mut files);
        let (bytes, copied) = (files.kept.bytes, files.kept.copied);
        assert!(bytes > 0 && copied >= bytes);
        files.seen.clear();
        assert_eq!(scene.file_of(&mut files), kept);
        assert_eq!(files.kept.bytes, bytes);
        assert_eq!(files.kept.copied, 2 * copied);
    }

    #[test]
    fn symbols_without_room_on_the_disk_are_lost_and_the_recording_goes_on() {
        let scene = Scene::new();
        let mut files = KeptFiles::default();
        let kept = files.write(&scene.path, &scene.writer, |_| {
            let (path, source) = (scene.path.clone(), ErrorKind::StorageFull.into());
            Err(RecorderError::Io { path, source })
        });
        assert_eq!(kept, None);
        assert_lost(1, scene.finish(&mut files));
    }

    #[test]
    fn a_file_that_was_closed_is_missing_where_all_are_kept() {
        let Scene {
            _folder,
            image,
            writer,
            pid,
            ..
        } = Scene::new();
        let mut all = KeptFiles::new(KeepSymbols::OfAll);
        assert_eq!(all.file_of(&image, pid, &writer), None);
        drop(image);
        assert_lost(1, all.finish(&writer, || Duration::ZERO));
    }

    #[test]
    fn the_end_does_not_wait_for_each_file() {
        let scene = Scene::new();
        let mut files = KeptFiles::default();
        assert_eq!(scene.file_of(&mut files), None);
        std::fs::remove_file(&scene.path).unwrap();
        let waited = std::cell::Cell::new(Duration::ZERO);
        let (kept, note) = files.finish(&scene.writer, || waited.replace(PATIENCE));
        assert_eq!(kept, []);
        assert!(note.unwrap().contains("it has perhaps nothing of 1:"));
    }

    fn assert_lost(count: usize, (kept, note): (Vec<KeptFile>, Option<String>)) {
        assert_eq!(kept, []);
        let expected = format!("it has nothing of {count}:");
        assert!(
            note.as_ref().is_some_and(|note| note.contains(&expected)),
            "{note:?}"
        );
    }
}
