use std::io::{Cursor, sink};

use super::*;

const HEAP: Heap = Heap {
    start: 0x2000,
    end: 0x2000,
    limit: 0x3000,
};

/// A guest with a page of memory at 0x1000.
struct Guest {
    system: System,
    memory: Memory,
}

impl Guest {
    fn new(folder: Option<&Path>) -> Self {
        let streams = Streams {
            input: Box::new(Cursor::new(b"input".to_vec())),
            output: Box::new(sink()),
            error: Box::new(sink()),
        };
        let mut memory = Memory::default();
        memory.add_region(0x1000, 0x1000).unwrap();
        let system = System::new(streams, folder, HEAP, 1_000).unwrap();
        Self { system, memory }
    }

    fn call(&mut self, number: u32, arguments: &[u32]) -> Result<Reply, UnknownCall> {
        let mut hart = Hart::default();
        hart.set(Register::A7, number);
        for (index, argument) in (10..).zip(arguments) {
            hart.set(Register::integer(index), *argument);
        }
        self.system.call(&hart, &mut self.memory, Cycles(2_500))
    }

    fn value(&mut self, number: u32, arguments: &[u32]) -> i32 {
        match self.call(number, arguments) {
            Ok(Reply::Value(value)) => value.cast_signed(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_buffer_outside_of_memory_is_an_error_of_the_guest() {
    let mut guest = Guest::new(None);
    assert_eq!(guest.value(number::WRITE, &[1, 0x1ffc, 8]), -14);
    assert_eq!(guest.value(number::WRITE, &[1, 0x1ffc, 4]), 4);
    assert_eq!(guest.value(number::READ, &[0, 0x9000, 4]), -14);
    assert_eq!(guest.value(number::READ, &[0, 0x1ffe, u32::MAX]), 2);
    assert_eq!(guest.value(number::WRITE, &[9, 0x1000, 1]), -9);
    assert_eq!(guest.value(number::FSTAT, &[1, 0x1fff]), -14);
    assert_eq!(guest.value(number::WRITEV, &[1, 0x1000, u32::MAX]), -22);
}

#[test]
fn files_are_those_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), b"0123456789").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
    let mut guest = Guest::new(Some(folder.path()));
    guest.memory.write(0x1000, b"/in\0").unwrap();
    guest.memory.write(0x1010, b"../../etc/passwd\0").unwrap();
    guest.memory.write(0x1030, b"link\0").unwrap();
    guest.memory.write(0x1040, b"out\0").unwrap();
    let at_fdcwd = u32::MAX;
    assert_eq!(guest.value(number::OPENAT, &[at_fdcwd, 0x1000, 0]), 3);
    assert_eq!(guest.value(number::LSEEK, &[3, 4, 0]), 4);
    assert_eq!(guest.value(number::READ, &[3, 0x1100, 3]), 3);
    assert_eq!(guest.memory.bytes(0x1100, 3).unwrap(), b"456");
    // Linux's form, which stores the result.
    assert_eq!(guest.value(number::LSEEK, &[3, 0, 2, 0x1200, 1]), 0);
    assert_eq!(guest.memory.load::<8>(0x1200).unwrap(), 9_u64.to_le_bytes());
    for path in [0x1010, 0x1030] {
        assert!(guest.value(number::OPENAT, &[at_fdcwd, path, 0]) < 0);
    }
    // Newlib's O_WRONLY, O_CREAT and O_TRUNC.
    assert_eq!(guest.value(number::OPEN, &[0x1040, 0x601, 0o644]), 4);
    assert_eq!(guest.value(number::WRITE, &[4, 0x1100, 3]), 3);
    assert_eq!(guest.value(number::CLOSE, &[4]), 0);
    assert_eq!(std::fs::read(folder.path().join("out")).unwrap(), b"456");
}

#[test]
fn without_a_folder_no_file_is_opened() {
    let mut guest = Guest::new(None);
    guest.memory.write(0x1000, b"/etc/passwd\0").unwrap();
    assert_eq!(guest.value(number::OPENAT, &[u32::MAX, 0x1000, 0]), -13);
}

#[test]
fn the_time_is_that_of_the_cycles() {
    let mut guest = Guest::new(None);
    assert_eq!(guest.value(number::CLOCK_GETTIME, &[0, 0x1000]), 0);
    let time = guest.memory.bytes(0x1000, 12).unwrap();
    assert_eq!(time[..8], 2_u64.to_le_bytes());
    assert_eq!(time[8..], 500_000_000_u32.to_le_bytes());
}

#[test]
fn the_heap_ends_at_its_limit() {
    let mut guest = Guest::new(None);
    assert_eq!(guest.value(number::BRK, &[0]), 0x2000);
    assert_eq!(guest.value(number::BRK, &[0x2800]), 0x2800);
    assert_eq!(guest.value(number::BRK, &[0x3001]), 0x2800);
}

#[test]
fn a_call_that_is_not_there_is_named() {
    let mut guest = Guest::new(None);
    let error = guest.call(222, &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "ecall 222 (mmap): the machine does not have this system call"
    );
    assert_eq!(guest.call(94, &[7]), Ok(Reply::Exit(7)));
}
