//! Every reader, and every kill, finds all methods up to some addition, with their lines.

use super::*;
use crate::elf::{DebugFiles, ElfSource};
use crate::substitute::{MethodSource, SlotLine};
use std::os::unix::fs::MetadataExt;

const MACHINES: [TargetMachine; 2] = [TargetMachine::X86_64, TargetMachine::Arm];
const BUILD_ID: [u8; 20] = [7; 20];

fn method(number: u64) -> MethodSlot {
    // Every third method has no bytecode, as JNI methods have none.
    let source = (!number.is_multiple_of(3)).then(|| MethodSource {
        class: format!("org.example.C{}", number / 8),
        file: format!("C{}.java", number / 8),
        lines: vec![SlotLine {
            offset: 2,
            line: number as u32 + 1,
        }],
    });
    MethodSlot {
        slot: Slot {
            offset: start(number),
            size: 12,
            name: format!("org.example.C{}.m{number}", number / 8),
        },
        descriptor: String::new(),
        source,
    }
}

fn start(number: u64) -> u64 {
    0x1000 + 16 * number
}

fn methods(count: u64) -> Vec<MethodSlot> {
    (0..count).map(method).collect()
}

fn of(methods: &[MethodSlot], length: u64, machine: TargetMachine) -> Substitute {
    Substitute::remap(methods.iter().cloned(), length, &BUILD_ID)
        .unwrap()
        .for_machine(machine)
}

/// A file with the first `count` methods.
fn created(path: &Path, count: u64, machine: TargetMachine) -> OpenFile {
    let whole = of(&methods(count), start(count), machine);
    OpenFile::create(whole, path).unwrap()
}

fn open(path: &Path) -> ElfSource {
    ElfSource::open(path, &DebugFiles::none()).unwrap()
}

/// Asserts that a file has the names and lines of the first `count` methods, and nothing of others.
fn assert_has(source: &ElfSource, count: u64) {
    assert_eq!(source.symbols().problems(), [] as [String; 0]);
    for number in 0..count {
        let MethodSlot {
            slot,
            source: known,
            ..
        } = method(number);
        for address in [slot.offset + 2, slot.offset + slot.size - 1] {
            let frames = source.frames(address);
            let frame = frames.first().unwrap();
            assert_eq!(frame.function, slot.name, "{number} of {count}");
            let found = frame.location.as_ref().map(|line| line.line);
            let line = known.as_ref().map(|_| number as u32 + 1);
            assert_eq!(found, line, "{number} of {count}");
        }
    }
    assert!(source.frames(start(count) + 2).is_empty(), "{count}");
}

#[test]
fn a_reader_sees_the_methods_of_when_it_opened_the_file() {
    for machine in MACHINES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("remap.elf");
        let mut file = created(&path, 8, machine);
        let all = methods(16);
        let mut readers = vec![(open(&path), 8)];
        let size = path.metadata().unwrap().len();
        let mut times = vec![path.metadata().unwrap().modified().unwrap()];
        for (at, step) in [(8, 1), (9, 2), (11, 3)] {
            let new = of(&all[at..at + step], start((at + step) as u64), machine);
            assert_eq!(file.append(&new, &path).unwrap(), Appended::All);
            let now = path.metadata().unwrap();
            assert_eq!(now.len(), size);
            // A reader notices a change by this time.
            times.push(now.modified().unwrap());
            readers.push((open(&path), (at + step) as u64));
        }
        for (reader, count) in &readers {
            assert_has(reader, *count);
        }
        assert!(times.windows(2).all(|pair| pair[0] != pair[1]), "{times:?}");
    }
}

#[test]
fn a_kill_within_an_addition_leaves_the_methods_before_it() {
    for machine in MACHINES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("remap.elf");
        let mut file = created(&path, 8, machine);
        let before = std::fs::read(&path).unwrap();
        let more = of(&methods(13)[8..], start(13), machine);
        assert_eq!(file.append(&more, &path).unwrap(), Appended::All);
        let after = std::fs::read(&path).unwrap();
        assert_has(&open(&path), 13);
        let changed: Vec<usize> = (0..before.len())
            .filter(|at| before[*at] != after[*at])
            .collect();
        // The last write is that of the header's field; the others are put in any order by a kernel that loses power.
        let header: Vec<usize> = changed.iter().copied().filter(|at| *at < 0x40).collect();
        assert!(!header.is_empty() && header.iter().all(|at| at / 8 == header[0] / 8));
        for keep in [1, 2, 3] {
            let mut killed = before.clone();
            for at in changed.iter().filter(|at| **at >= 0x40 && **at % keep == 0) {
                killed[*at] = after[*at];
            }
            std::fs::write(&path, &killed).unwrap();
            assert_has(&open(&path), 8);
        }
    }
}

#[test]
fn additions_cost_no_more_however_many_methods_there_are() {
    const METHODS: u64 = 4000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("remap.elf");
    let all = methods(METHODS);
    let mut growing = GrowingSubstitute::new(&BUILD_ID);
    let (mut files, mut last) = (0, None);
    for count in 1..=all.len() {
        growing
            .write(&path, &all[..count], start(count as u64))
            .unwrap();
        let inode = Some(path.metadata().unwrap().ino());
        files += u32::from(inode != last);
        last = inode;
    }
    // Each file has space for a quarter more methods, and for sixteen.
    assert!((10..60).contains(&files), "{files} files");
    assert_has(&open(&path), METHODS);
    let sparse = path.metadata().unwrap().blocks();

    growing.complete(&path, &all, start(METHODS)).unwrap();
    assert_has(&open(&path), METHODS);
    let whole = of(&all, start(METHODS), TargetMachine::host())
        .to_bytes()
        .unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    assert!(path.metadata().unwrap().blocks() <= sparse);
    // It can grow again.
    let all = methods(METHODS + 1);
    growing.write(&path, &all, start(METHODS + 1)).unwrap();
    assert_has(&open(&path), METHODS + 1);
}

#[test]
fn methods_that_could_not_be_written_are_written_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("symbols/remap.elf");
    let mut growing = GrowingSubstitute::new(&BUILD_ID);
    growing.write(&path, &methods(2), start(2)).unwrap_err();
    std::fs::create_dir(folder.path().join("symbols")).unwrap();
    growing.write(&path, &methods(3), start(3)).unwrap();
    assert_has(&open(&path), 3);
    // What is appended after a failure replaces what that has left.
    let file = growing.open.as_mut().unwrap();
    let readable = std::mem::replace(&mut file.file, File::open(&path).unwrap());
    growing.write(&path, &methods(4), start(4)).unwrap_err();
    assert_has(&open(&path), 3);
    growing.open.as_mut().unwrap().file = readable;
    growing.write(&path, &methods(5), start(5)).unwrap();
    assert_has(&open(&path), 5);
}
