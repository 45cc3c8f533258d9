//! Is every dex file and library of a mapped file found at its place?

use super::*;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::os::unix::fs::MetadataExt;
use varid_model::Mode;
use varid_model::{Device, Pid};
use varid_testing::containers;

const PAGE: u64 = 4096;

fn dex() -> Vec<u8> {
    crate::testing::dex().bytecode.bytes().to_vec()
}

/// A file of this process, as if `pages` of it were mapped at 0x7000_0000.
fn with_mapped<T>(
    (name, bytes): (&str, &[u8]),
    pages: Range<u64>,
    look: impl FnOnce(&KernelMapping<'_>) -> T,
) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let mapped = KernelMapping {
        pid: Pid::new(std::process::id()),
        start: 0x7000_0000,
        end: 0x7000_0000 + (pages.end - pages.start) * PAGE,
        pgoff: pages.start * PAGE,
        device: Device::of_number(path.metadata().unwrap().dev()),
        inode: path.metadata().unwrap().ino(),
        mode: Mode::default(),
        path: &path,
    };
    look(&mapped)
}

/// The parts of such a mapping: their addresses, and their offsets in the dex files and in the file.
fn parts(name: &str, bytes: &[u8], pages: Range<u64>) -> Vec<(u64, u64, u64, u64)> {
    let part = |part: ProcessMapping| match part.image {
        ProcessImage::Code(dex) => (part.start, part.end, part.pgoff, dex.file_offset),
        other => panic!("{other:?}"),
    };
    with_mapped((name, bytes), pages, |mapped| {
        let mut images = Images::default();
        let mut get = || -> Vec<_> {
            let (space, budget) = (AddressSpace::default(), LookBudget::default());
            let found = images.get(mapped, &space, &budget);
            found.into_iter().map(part).collect()
        };
        let found = get();
        assert_eq!(found, get());
        found
    })
}

/// The names of the locations of the dex files of such a mapping.
fn names(name: &str, bytes: &[u8]) -> Vec<String> {
    with_mapped((name, bytes), 0..4, |mapped| {
        let (space, budget) = (AddressSpace::default(), LookBudget::default());
        let found = Images::default().get(mapped, &space, &budget);
        let name = |part: ProcessMapping| match part.image {
            ProcessImage::Code(dex) => {
                let location = dex.location();
                location.file_name().unwrap().to_string_lossy().into_owned()
            }
            other => panic!("{other:?}"),
        };
        found.into_iter().map(name).collect()
    })
}

/// Two dex files that begin anywhere in the file: each byte of a mapping belongs to the one that it is a byte of.
#[test]
fn every_dex_file_of_a_container_is_an_image_of_its_own() {
    let dex = dex();
    let mut large = dex.clone();
    large.resize(3 * PAGE as usize, 0);
    let size = (large.len() as u32).to_le_bytes();
    large[0x20..0x24].copy_from_slice(&size);
    let vdex = containers::vdex("027", &[&large, &dex], &[]);
    let first = 12 + 48 + 8;
    let second = first + large.len() as u64;
    let at = |offset: u64| 0x7000_0000 + offset;
    let end = at(second + dex.len() as u64);
    let whole = parts("base.vdex", &vdex, 0..4);
    let expected = [
        (at(first), at(second), 0, first),
        (at(second), end, 0, second),
    ];
    assert_eq!(whole, expected);
    // From the middle of the first on, and what is in front of the second only.
    let back = |address: u64| address - PAGE;
    let later = parts("base.vdex", &vdex, 1..4);
    let expected = [
        (at(0), back(at(second)), PAGE - first, first),
        (back(at(second)), back(end), 0, second),
    ];
    assert_eq!(later, expected);
    let front = parts("base.vdex", &vdex, 0..2);
    assert_eq!(front, [(at(first), at(2 * PAGE), 0, first)]);
    assert_eq!(parts("base.vdex", &vdex, 8..9), []);
    let dey = containers::optimized(&dex);
    let expected = [(at(40), at(40 + dex.len() as u64), 0, 40)];
    assert_eq!(parts("classes.odex", &dey, 0..1), expected);
}

/// A process that has its part already does not take a file from others.
#[test]
fn what_one_process_has_no_memory_for_another_may() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("classes.dex");
    let content = dex();
    std::fs::write(&path, &content).unwrap();
    let meta = path.metadata().unwrap();
    let mapped = KernelMapping {
        pid: Pid::new(std::process::id()),
        start: 0,
        end: 0,
        pgoff: 0,
        device: Device::of_number(meta.dev()),
        inode: meta.ino(),
        mode: Mode::default(),
        path: &path,
    };
    let (file, key) = file::open(&mapped).unwrap();
    let mut images = Images::default();
    let location = Location {
        path: &path,
        entry: None,
    };
    let dex = &crate::format::Dex;
    let mut get = |taken| images.code(dex, &file, &key, 0..u64::MAX, location, taken);
    assert!(matches!(get(1 << 28), ProcessImage::Other(_)));
    let ProcessImage::Code(dex) = get(0) else {
        panic!("it is not read")
    };
    let image = ProcessImage::Code(dex);
    assert_eq!(image.code_memory(), content.len() as u64);
    let mut space = AddressSpace::default();
    for start in [0x1000, 0x9000] {
        space.insert(crate::testing::mapped(start, 0x1000, 0, image.clone()));
    }
    assert_eq!(space.code_memory(), content.len() as u64);
    // It is there already: it takes no more.
    assert!(matches!(get(1 << 28), ProcessImage::Code(_)));
}

/// An APK whose libraries are mapped from it: each is an image with its own build-id and offsets.
#[test]
fn every_library_of_an_archive_is_an_image_of_its_own() {
    /// Writes an archive of two copies of a file, each at a page of its own.
    const APK: &str = r#"
import sys, zipfile
apk, library = sys.argv[1:]
with zipfile.ZipFile(apk, "w") as made, open(library, "rb") as file:
    content = file.read()
    for name in ["lib/x86_64/libone.so", "lib/x86_64/libtwo.so"]:
        entry = zipfile.ZipInfo(name)
        entry.extra = b"\0" * (-(made.fp.tell() + 30 + len(name)) % 4096)
        made.writestr(entry, content)
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base.apk");
    let program = std::env::current_exe().unwrap();
    let command = ["-c", APK].map(std::ffi::OsStr::new);
    let files = [path.as_os_str(), program.as_os_str()];
    let written = std::process::Command::new("python3")
        .args(command)
        .args(files)
        .status();
    assert!(written.unwrap().success());
    let whole = ElfImage::new(
        File::own(std::fs::File::open(&program).unwrap()),
        LookBudget::default().reserve_open_file().unwrap(),
        &program,
    );
    let size = program.metadata().unwrap().len();
    let mut images = Images::default();
    let mut get = |pgoff| {
        let mapped = KernelMapping {
            pid: Pid::new(std::process::id()),
            start: 0x7000_0000,
            end: 0x7000_0000 + 2 * PAGE,
            pgoff,
            device: Device::of_number(path.metadata().unwrap().dev()),
            inode: path.metadata().unwrap().ino(),
            mode: Mode::from_mmap(5, 2),
            path: &path,
        };
        images.get(&mapped, &AddressSpace::default(), &LookBudget::default())
    };
    let first = PAGE;
    let second = (first + size + 30 + 20).next_multiple_of(PAGE);
    for (start, name) in [(first, "libone.so"), (second, "libtwo.so")] {
        let found = get(start + 3 * PAGE);
        let [
            ProcessMapping {
                start: at,
                end,
                pgoff,
                image: ProcessImage::Elf(elf),
                ..
            },
        ] = &found[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!(
            (*at, *end, *pgoff),
            (0x7000_0000, 0x7000_0000 + 2 * PAGE, 3 * PAGE)
        );
        assert_eq!(
            elf.path,
            Path::new(&format!("{}!lib/x86_64/{name}", path.display()))
        );
        let module = |elf: &ElfImage| {
            elf.contents()
                .unwrap()
                .module
                .borrow()
                .address_of_offset(3 * PAGE)
        };
        assert!(module(elf).is_some());
        assert_eq!(module(elf), module(&whole));
        assert_eq!(elf.build_id(), whole.build_id());
        // All of its segments are one image.
        let [
            ProcessMapping {
                image: ProcessImage::Elf(again),
                ..
            },
        ] = &get(start)[..]
        else {
            panic!("it is not found again")
        };
        assert!(Rc::ptr_eq(elf, again));
    }
}

/// Only files that are called so are looked into: each library of a process would be read otherwise.
#[test]
fn an_oat_file_is_known_by_its_name() {
    let dex = dex();
    let oat = containers::oat("088", &[("base.apk", &dex)]);
    assert_eq!(parts("base.odex", &oat, 0..3).len(), 1);
    assert_eq!(parts("libbase.so", &oat, 0..3), []);
}

#[test]
fn a_dex_file_of_a_container_has_its_name_there() {
    let dex = dex();
    let jar = include_bytes!("../../../symbolizer/tests/fixtures/container/small.jar");
    assert_eq!(names("app.jar", jar), ["app.jar!classes.dex"]);
    let vdex = containers::vdex("027", &[&dex, &dex], &[]);
    let expected = ["base.vdex!classes.dex", "base.vdex!classes2.dex"];
    assert_eq!(names("base.vdex", &vdex), expected);
    let oat = containers::oat("088", &[("/data/app/base.apk", &dex)]);
    assert_eq!(names("base.odex", &oat), ["base.apk"]);
    assert_eq!(names("math.dex", &dex), ["math.dex"]);
}

#[test]
fn a_stored_dex_file_is_found_in_its_archive() {
    let jar = include_bytes!("../../../symbolizer/tests/fixtures/container/small.jar");
    let at = jar
        .windows(4)
        .position(|window| window == b"dex\n")
        .unwrap() as u64;
    let len = dex().len() as u64;
    let expected = [(0x7000_0000 + at, 0x7000_0000 + at + len, 0, at)];
    assert_eq!(parts("app.jar", jar, 0..2), expected);
}

/// A plugin was unloaded, and the next one is mapped where it was, before the first one's file was opened.
#[test]
fn a_file_is_found_by_its_path_where_another_is_mapped_by_now() {
    let folder = tempfile::tempdir().unwrap();
    let [gone, next] = ["gone.so", "next.so"].map(|name| folder.path().join(name));
    for path in [&gone, &next] {
        std::fs::write(path, [path.as_os_str().len() as u8; PAGE as usize]).unwrap();
    }
    let len = std::num::NonZeroUsize::new(PAGE as usize).unwrap();
    let flags = (ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE);
    let mapped = std::fs::File::open(&next).unwrap();
    // SAFETY: a new mapping, which nothing refers to.
    let start = unsafe { mmap(None, len, flags.0, flags.1, mapped, 0) };
    let start = start.unwrap().as_ptr() as u64;
    let opened = |path: &Path| {
        let meta = path.metadata().unwrap();
        let mapped = KernelMapping {
            pid: Pid::new(std::process::id()),
            start,
            end: start + PAGE,
            pgoff: 0,
            device: Device::of_number(meta.dev()),
            inode: meta.ino(),
            mode: Mode::default(),
            path,
        };
        let here = File::own(std::fs::File::open(path).unwrap());
        let key = FileKey::of(&here.metadata().unwrap());
        (file::open(&mapped).map(|(_, key)| key), key)
    };
    for path in [&next, &gone] {
        let (found, expected) = opened(path);
        assert_eq!(found.unwrap(), expected, "{}", path.display());
    }
    // Another file at the path is none of the process's.
    let (_, before) = opened(&gone);
    std::fs::rename(&next, &gone).unwrap();
    let mapped = KernelMapping {
        pid: Pid::new(std::process::id()),
        start: PAGE,
        end: 2 * PAGE,
        pgoff: 0,
        device: Device::of_number(gone.metadata().unwrap().dev()),
        inode: before.inode,
        mode: Mode::default(),
        path: &gone,
    };
    assert!(file::open(&mapped).is_err());
}

/// Generated code in memory without a name: it is mapped again, and cannot be opened any more.
#[test]
fn memory_of_generated_code_is_opened_once() {
    let memory = memfd_create(c"jit-cache", MFdFlags::MFD_CLOEXEC);
    let file = std::fs::File::from(memory.unwrap());
    file.set_len(PAGE).unwrap();
    let meta = file.metadata().unwrap();
    let len = std::num::NonZeroUsize::new(PAGE as usize).unwrap();
    // SAFETY: a new mapping, which nothing refers to.
    let start = unsafe {
        mmap(
            None,
            len,
            ProtFlags::PROT_READ,
            MapFlags::MAP_SHARED,
            &file,
            0,
        )
    };
    let start = start.unwrap().as_ptr() as u64;
    let mapped = |start: u64| KernelMapping {
        pid: Pid::new(std::process::id()),
        start,
        end: start + PAGE,
        pgoff: 0,
        device: Device::of_number(meta.dev()),
        inode: meta.ino(),
        mode: Mode {
            execute: true,
            ..Mode::default()
        },
        path: Path::new("/memfd:jit-cache (deleted)"),
    };
    if file::open(&mapped(start)).is_err() {
        println!("only root opens what is mapped");
        return;
    }
    let mut images = Images::default();
    let mut requests = |mapped: &KernelMapping<'_>| {
        let before = crate::reader::requests();
        let found = images.get(mapped, &AddressSpace::default(), &LookBudget::default());
        assert!(matches!(&found[..], [part] if matches!(part.image, ProcessImage::Other(_))));
        crate::reader::requests() - before
    };
    // Nothing is mapped there, and it has no name to be opened by.
    assert_eq!(requests(&mapped(PAGE)), 1);
    // It is opened, and its first bytes are read.
    assert_eq!(requests(&mapped(start)), 2);
    assert_eq!(requests(&mapped(PAGE)), 0);
    // Nor where it is written to.
    let written = KernelMapping {
        mode: Mode::default(),
        ..mapped(PAGE)
    };
    let before = crate::reader::requests();
    images.get(&written, &AddressSpace::default(), &LookBudget::default());
    assert_eq!(crate::reader::requests(), before);
    let mut images = Images::default();
    let mut requests = 0;
    for _ in 0..100 {
        let before = crate::reader::requests();
        images.get(
            &mapped(PAGE),
            &AddressSpace::default(),
            &LookBudget::default(),
        );
        requests += crate::reader::requests() - before;
    }
    assert_eq!(requests, TRIES.into());
}

/// The segments of a library, and then another file in its place.
#[test]
fn the_next_mapping_of_a_file_takes_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.so");
    std::fs::write(&path, b"the first one").unwrap();
    let (pid, budget) = (Pid::new(std::process::id()), LookBudget::default());
    let mut images = Images::default();
    let mut requests = |pgoff, pid| {
        let meta = path.metadata().unwrap();
        let mapped = KernelMapping {
            pid,
            start: 0,
            end: PAGE,
            pgoff,
            device: Device::of_number(meta.dev()),
            inode: meta.ino(),
            mode: Mode::default(),
            path: &path,
        };
        let before = crate::reader::requests();
        images.get(&mapped, &AddressSpace::default(), &budget);
        crate::reader::requests() - before
    };
    let first = requests(0, pid);
    assert!(first > 0);
    assert_eq!(requests(PAGE, pid), 0);
    let other = folder.path().join("other");
    std::fs::write(&other, b"another one").unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(requests(0, pid), first);
    assert_eq!(requests(PAGE, pid), 0);
    // Its paths may lead elsewhere.
    assert!(requests(0, Pid::new(1)) > 0);
}
