//! Tests that a known dex file is taken from the cache, and never with wrong names.

use crate::common;

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use varid_symbolizer::bytecode::BytecodeImage;
use varid_symbolizer::dex::{DexBytecode, DexFile};
use varid_symbolizer::elf::ElfSymbols;
use varid_symbolizer::substitute::{Cache, Provided, Substitute};

/// A cache, a session folder, and a dex file.
struct Bed {
    folder: tempfile::TempDir,
    dex: DexBytecode<'static>,
    limit: u64,
}

impl Bed {
    fn new() -> Self {
        let bytes = fs::read(common::fixtures().join("names.dex")).unwrap();
        let bed = Self {
            folder: tempfile::tempdir().unwrap(),
            dex: DexBytecode::new(DexFile::from_vec(bytes).unwrap()).unwrap(),
            limit: 1 << 20,
        };
        fs::create_dir(bed.session()).unwrap();
        bed
    }

    fn session(&self) -> PathBuf {
        self.folder.path().join("session")
    }

    fn cache_folder(&self) -> PathBuf {
        self.folder.path().join("cache/varid")
    }

    fn user(&self) -> u32 {
        fs::metadata(self.folder.path()).unwrap().uid()
    }

    fn cache(&self) -> Cache {
        Cache::open(&self.cache_folder(), self.user(), self.limit).unwrap()
    }

    fn elf(&self) -> PathBuf {
        self.session().join("a.elf")
    }

    fn sym(&self) -> PathBuf {
        self.session().join("a.sym")
    }

    fn provide_at(&self, elf: &Path, sym: &Path) -> Provided {
        self.cache().provide(&self.dex, elf, sym).unwrap()
    }

    /// Returns true if the files came from the cache. Their content must be right in any case.
    fn provide(&self) -> bool {
        let provided = self.provide_at(&self.elf(), &self.sym());
        assert!(provided.not_stored.is_none(), "{:?}", provided.not_stored);
        self.check(&self.elf(), &self.sym());
        assert_eq!(files(&self.session()).len(), 2);
        provided.reused
    }

    /// Checks that both files equal those that are written without a cache.
    fn check(&self, elf: &Path, sym: &Path) {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        let substitute = Substitute::of_bytecode(&self.dex);
        substitute.write(&plain).unwrap();
        assert!(fs::read(&plain).unwrap() == fs::read(elf).unwrap());
        assert!(ElfSymbols::open(elf).is_ok());
        varid_symbolizer::substitute::write_sym(&self.dex, &plain).unwrap();
        assert!(fs::read(&plain).unwrap() == fs::read(sym).unwrap());
    }

    /// The path of the entry of that kind.
    fn entry(&self, kind: &str) -> PathBuf {
        let id = varid_symbolizer::hex(&self.dex.content_id());
        let mut entries = files(&self.cache_folder());
        entries.retain(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(&id) && path.extension().is_some_and(|found| found == kind)
        });
        entries.pop().unwrap()
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_second_session_gets_what_the_first_one_wrote() {
    let bed = Bed::new();
    assert!(!bed.provide());
    let first = fs::metadata(bed.elf()).unwrap();
    assert!(bed.provide());
    let second = fs::metadata(bed.elf()).unwrap();
    // Each session has a copy of its own with the same holes, so that it can be given away.
    let kept = fs::metadata(bed.entry("elf")).unwrap();
    assert!(first.ino() != second.ino() && second.ino() != kept.ino());
    assert_eq!((second.nlink(), kept.nlink()), (1, 1));
    assert_eq!(first.blocks(), second.blocks());
    assert_eq!(
        fs::metadata(bed.cache_folder()).unwrap().mode() & 0o777,
        0o700
    );
    // The session does not need the cache.
    fs::remove_dir_all(bed.cache_folder()).unwrap();
    bed.check(&bed.elf(), &bed.sym());
}

#[test]
fn a_damaged_entry_is_written_anew() {
    let bed = Bed::new();
    bed.provide();
    for kind in ["elf", "sym"] {
        for damage in [
            "cut", "longer", "other", "empty", "writable", "link", "folder",
        ] {
            let entry = bed.entry(kind);
            let mut bytes = fs::read(&entry).unwrap();
            let whole = bytes.len();
            match damage {
                "cut" => bytes.truncate(whole - 1),
                "longer" => bytes.push(b'\n'),
                "empty" => bytes.clear(),
                _ => {}
            }
            // An entry with the right name and the wrong content id.
            if damage == "other" {
                let from = bed.dex.content_id();
                if kind == "elf" {
                    let at = bytes.windows(20).position(|part| part == from).unwrap();
                    bytes[at] ^= 1;
                } else {
                    bytes[whole - 2] ^= 1;
                }
            }
            fs::remove_file(&entry).unwrap();
            match damage {
                "link" => {
                    let target = bed.folder.path().join("target");
                    fs::write(&target, &bytes).unwrap();
                    symlink(&target, &entry).unwrap();
                }
                "folder" => fs::create_dir(&entry).unwrap(),
                _ => fs::write(&entry, &bytes).unwrap(),
            }
            if damage == "writable" {
                fs::set_permissions(&entry, Permissions::from_mode(0o666)).unwrap();
            }
            if damage == "folder" {
                let provided = bed.provide_at(&bed.elf(), &bed.sym());
                assert!(provided.not_stored.is_some());
                fs::remove_dir(&entry).unwrap();
                bed.check(&bed.elf(), &bed.sym());
                bed.provide();
            } else {
                assert!(!bed.provide(), "{kind} {damage}");
            }
            assert!(bed.provide(), "{kind} {damage}");
        }
    }
}

#[test]
fn what_is_another_users_is_not_trusted() {
    let bed = Bed::new();
    bed.provide();
    if std::os::unix::fs::chown(bed.entry("elf"), Some(65534), None).is_err() {
        println!("skipped: only root can give files away");
        return;
    }
    assert!(!bed.provide());
    assert!(bed.provide());
    std::os::unix::fs::chown(bed.cache_folder(), Some(65534), None).unwrap();
    let error = Cache::open(&bed.cache_folder(), bed.user(), 1).unwrap_err();
    assert!(
        error.to_string().contains("not a folder of user"),
        "{error}"
    );
}

#[test]
fn a_folder_that_others_can_enter_is_closed() {
    let bed = Bed::new();
    fs::create_dir_all(bed.cache_folder()).unwrap();
    fs::set_permissions(bed.cache_folder(), Permissions::from_mode(0o755)).unwrap();
    bed.provide();
    assert_eq!(
        fs::metadata(bed.cache_folder()).unwrap().mode() & 0o777,
        0o700
    );
    let file = bed.folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Cache::open(&file, bed.user(), 1).is_err());
}

#[test]
fn a_folder_that_others_can_replace_is_refused() {
    let bed = Bed::new();
    bed.provide();
    let parent = bed.cache_folder().parent().unwrap().to_owned();
    let refused = |what: &str| {
        let error = Cache::open(&bed.cache_folder(), bed.user(), 1).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    };
    fs::set_permissions(&parent, Permissions::from_mode(0o770)).unwrap();
    refused("others can write to it");
    fs::set_permissions(&parent, Permissions::from_mode(0o700)).unwrap();
    assert!(bed.provide());
    let moved = bed.folder.path().join("moved");
    fs::rename(&parent, &moved).unwrap();
    symlink(&moved, &parent).unwrap();
    refused("not a folder of user");
    // Nothing is created through such a link.
    let empty = bed.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::remove_file(&parent).unwrap();
    symlink(&empty, &parent).unwrap();
    refused("not a folder of user");
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
}

#[test]
fn a_folder_that_is_swapped_while_it_is_open_harms_no_other() {
    let bed = Bed::new();
    let cache = Cache::open(&bed.cache_folder(), bed.user(), 1).unwrap();
    let (moved, other) = (
        bed.folder.path().join("moved"),
        bed.folder.path().join("other"),
    );
    fs::create_dir(&other).unwrap();
    fs::rename(bed.cache_folder(), moved).unwrap();
    symlink(&other, bed.cache_folder()).unwrap();
    let entry = other.join(format!("{}-X86_64.1.elf", "0".repeat(40)));
    fs::write(&entry, "another's").unwrap();
    cache.provide(&bed.dex, &bed.elf(), &bed.sym()).unwrap();
    assert_eq!(files(&other), [entry]);
}

#[test]
fn those_not_used_for_the_longest_time_make_room() {
    let mut bed = Bed::new();
    bed.provide();
    let own: u64 = files(&bed.cache_folder())
        .iter()
        .map(|path| fs::metadata(path).unwrap().blocks() * 512)
        .sum();
    // Two old entries of 64 KB, used an hour and a day ago.
    let old = |name: &str, hours: u64| {
        let path = bed.cache_folder().join(name.replace("ID", &"0".repeat(40)));
        fs::write(&path, vec![1; 65536]).unwrap();
        let time = SystemTime::now() - Duration::from_secs(3600 * hours);
        let times = FileTimes::new().set_accessed(time).set_modified(time);
        File::open(&path).unwrap().set_times(times).unwrap();
        path
    };
    let (hour, day) = (
        old("ID-X86_64.1.elf", 1),
        old("ID-X86_64.1.sym.7-0.tmp", 24),
    );
    // A file with another name is not an entry, whoever put it there.
    let foreign = old("ID-X86_64.1.elf.bak", 48);
    bed.limit = own + 100_000;
    assert!(bed.provide());
    assert!(day.exists(), "a hit does not look around");
    fs::remove_file(bed.entry("sym")).unwrap();
    assert!(!bed.provide());
    assert!(hour.exists() && !day.exists());
    assert!(bed.provide());
    // There is no room for anything, but the session has its files.
    bed.limit = 1;
    fs::remove_file(bed.entry("elf")).unwrap();
    assert!(!bed.provide());
    assert_eq!(files(&bed.cache_folder()), [foreign]);
}

#[test]
fn a_session_on_another_file_system_gets_a_copy() {
    let bed = Bed::new();
    bed.provide();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        println!("skipped: no /dev/shm");
        return;
    };
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(other.path()) == device(bed.folder.path()) {
        println!("skipped: no two file systems here");
        return;
    }
    let (elf, sym) = (other.path().join("a.elf"), other.path().join("a.sym"));
    for copies in 0..2 {
        assert!(bed.provide_at(&elf, &sym).reused, "{copies}");
        bed.check(&elf, &sym);
        assert_eq!(files(other.path()).len(), 2);
    }
}

#[test]
fn a_change_of_what_is_written_changes_the_version() {
    // If this fails, the written bytes have changed: increase the cache's version, and put the new hashes here.
    let bed = Bed::new();
    bed.provide();
    let sha1 = |path: &Path| {
        sha1_smol::Sha1::from(fs::read(path).unwrap())
            .digest()
            .to_string()
    };
    let version = bed.entry("sym");
    let version = version.file_stem().unwrap().to_str().unwrap();
    let (_, version) = version.rsplit_once('.').unwrap();
    if cfg!(target_arch = "x86_64") {
        assert_eq!(
            (version, &*sha1(&bed.elf()), &*sha1(&bed.sym())),
            (
                "5",
                "b547886134a8aff8cbf3525265190efbedd99633",
                "651092023ffaf5e155653f5155245a1153febaeb"
            )
        );
    }
}
