//! Symbols of files that cannot be found later are kept, within the limits.

use super::*;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use varid_model::{Device, Mode, MonotonicNs, Rate};
use varid_process::{Images, KernelMapping, Process, ProcessImage};
use varid_recording::{EventDesc, Manifest, SampleSource, SessionTarget, TargetKind};
use varid_symbolizer::elf::ElfSymbols;

/// A session, and a sampled copy of this program beside it.
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

    /// The number of functions that the session's file names.
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
    // There is space for the headers and a few symbols.
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
