use super::*;

/// Builds a jitdump file.
struct Maker {
    bytes: Vec<u8>,
    big: bool,
}

enum Field<'a> {
    Word(u32),
    Long(u64),
    Text(&'a [u8]),
    JitFunction(usize),
}
use Field::{JitFunction as Bytes, Long, Text, Word};

impl Maker {
    fn new(big: bool) -> Self {
        let mut maker = Self {
            bytes: Vec::new(),
            big,
        };
        maker.put(&[
            Word(MAGIC),
            Word(1),
            Word(40),
            Word(62),
            Word(0),
            Word(4711),
            Long(5),
            Long(0),
        ]);
        maker
    }

    fn put(&mut self, fields: &[Field<'_>]) {
        for field in fields {
            match field {
                Word(word) if self.big => self.bytes.extend(word.to_be_bytes()),
                Word(word) => self.bytes.extend(word.to_le_bytes()),
                Long(word) if self.big => self.bytes.extend(word.to_be_bytes()),
                Long(word) => self.bytes.extend(word.to_le_bytes()),
                Text(text) => self.bytes.extend([text, &b"\0"[..]].concat()),
                Bytes(count) => self.bytes.resize(self.bytes.len() + count, 0x90),
            }
        }
    }

    fn record(mut self, kind: u32, time: u64, fields: &[Field<'_>]) -> Self {
        let mut body = Self {
            bytes: Vec::new(),
            big: self.big,
        };
        body.put(fields);
        self.put(&[Word(kind), Word(16 + body.bytes.len() as u32), Long(time)]);
        self.bytes.extend(body.bytes);
        self
    }

    fn load(self, time: u64, address: u64, size: u64, index: u64, name: &[u8]) -> Self {
        let code = Bytes(size as usize);
        let made_at = Long(address);
        self.record(
            CODE_LOAD,
            time,
            &[
                Word(1),
                Word(1),
                made_at,
                Long(address),
                Long(size),
                Long(index),
                Text(name),
                code,
            ],
        )
    }

    fn relocate(self, time: u64, old: u64, new: u64, size: u64, index: u64) -> Self {
        let fields = [
            Word(1),
            Word(1),
            Long(new),
            Long(old),
            Long(new),
            Long(size),
            Long(index),
        ];
        self.record(CODE_MOVE, time, &fields)
    }
}

fn name(dump: &JitDump, time: u64, address: u64) -> Option<String> {
    let frame = dump.lookup(time, address)?;
    Some(frame.function.into_owned())
}

#[test]
fn code_is_loaded_moved_and_reused_in_both_byte_orders() {
    for big in [false, true] {
        // The source lines of the function, which are skipped.
        let lines = [
            Long(0x1000),
            Long(1),
            Long(0x1000),
            Word(7),
            Word(0),
            Text(b"a.js"),
        ];
        let file = Maker::new(big)
            .record(2, 10, &lines)
            .load(10, 0x1000, 0x20, 1, b"first")
            .record(4, 11, &[Long(4), Long(4), Long(0), Word(9)])
            .record(77, 11, &[Long(1)])
            .relocate(20, 0x1000, 0x3000, 0x20, 1)
            .load(30, 0x1010, 0x20, 2, b"second")
            .record(CODE_CLOSE, 40, &[])
            .load(50, 0x9000, 0x20, 3, b"after the end")
            .bytes;
        let dump = JitDump::parse(&file).unwrap();
        assert_eq!(
            (dump.pid(), dump.broken(), dump.has_machine_times()),
            (4711, 0, false)
        );
        assert_eq!(name(&dump, 9, 0x1000), None);
        assert_eq!(name(&dump, 10, 0x1007).unwrap(), "first");
        assert_eq!(name(&dump, 19, 0x1008).unwrap(), "first");
        assert_eq!(name(&dump, 20, 0x1008), None);
        assert_eq!(name(&dump, 20, 0x3009).unwrap(), "first");
        assert_eq!(name(&dump, 30, 0x1010).unwrap(), "second");
        assert_eq!(name(&dump, 60, 0x9000), None);
    }
}

#[test]
fn unwinding_information_is_that_of_the_function_which_is_loaded_next() {
    let size = |dump: &JitDump, address| {
        let code = dump.map().lookup(60, address).unwrap();
        (code.name.to_string(), code.eh_frame.len())
    };
    for big in [false, true] {
        let dump = Maker::new(big)
            // 9 bytes of which 4 are `.eh_frame_hdr`.
            .record(4, 11, &[Long(9), Long(4), Long(16), Bytes(9)])
            .load(11, 0x1000, 0x20, 1, b"described")
            .load(12, 0x2000, 0x20, 2, b"other")
            .relocate(20, 0x1000, 0x3000, 0x20, 1)
            .record(4, 21, &[Long(9), Long(4), Long(16), Bytes(9)])
            .record(4, 21, &[Long(9), Long(4), Long(16), Bytes(4)])
            .load(22, 0x4000, 0x20, 3, b"behind a broken one")
            .record(4, 23, &[Long(4), Long(9), Long(16), Bytes(4)])
            .record(4, 23, &[Long(1 << 20), Long(4), Long(16), Bytes(1 << 20)])
            .load(24, 0x5000, 0x20, 4, b"behind a long one")
            .bytes;
        let dump = JitDump::parse(&dump).unwrap();
        assert_eq!(dump.broken(), 2);
        assert_eq!(size(&dump, 0x3001), ("described".to_owned(), 5));
        assert_eq!(size(&dump, 0x2001), ("other".to_owned(), 0));
        assert_eq!(size(&dump, 0x4001), ("behind a broken one".to_owned(), 0));
        assert_eq!(size(&dump, 0x5001), ("behind a long one".to_owned(), 0));
    }
}

#[test]
fn a_file_that_grows_is_read_on_where_it_ended() {
    let file = Maker::new(false)
        .load(10, 0x1000, 0x20, 1, b"first")
        .load(20, 0x1010, 0x20, 2, b"second")
        .bytes;
    for cut in 40..file.len() {
        let mut dump = JitDump::new(&file).unwrap();
        let mut replaced = Vec::new();
        let mut from = dump.header_size();
        for to in [cut, file.len()] {
            let (read, found) = dump.feed(&file[from..to]);
            from += read;
            replaced.extend(found);
        }
        assert_eq!((from, dump.map().codes().len()), (file.len(), 2));
        let expected = Replacement {
            range: 0x1010..0x1030,
            from: 20,
        };
        assert_eq!(replaced, [expected]);
    }
}

#[test]
fn a_broken_record_costs_only_itself() {
    let file = Maker::new(false)
        // The claimed code exceeds the record; the name does not end; a function that does not exist is moved.
        .record(
            CODE_LOAD,
            1,
            &[
                Word(1),
                Word(1),
                Long(0),
                Long(0),
                Long(1 << 40),
                Long(9),
                Text(b"x"),
            ],
        )
        .record(
            CODE_LOAD,
            1,
            &[
                Word(1),
                Word(1),
                Long(0),
                Long(0),
                Long(0),
                Long(9),
                Word(0x6161_6161),
            ],
        )
        .relocate(2, 0x5000, 0x6000, 0x10, 5)
        .load(u64::MAX, u64::MAX - 4, 8, 3, b"beyond the last address")
        .load(10, 0x1000, 0x20, 1, b"right")
        .relocate(20, 0x1000, 0x3000, 0x10, 1)
        .bytes;
    let dump = JitDump::parse(&file).unwrap();
    assert_eq!(dump.broken(), 5);
    assert_eq!(dump.map().codes().len(), 1);
    assert_eq!(name(&dump, 30, 0x101f).unwrap(), "right");
}

#[test]
fn a_record_without_a_size_ends_the_file() {
    let mut file = Maker::new(false).load(10, 0x1000, 0x20, 1, b"right");
    file.put(&[Word(0), Word(15), Long(0)]);
    let dump = JitDump::parse(&file.load(20, 0x1000, 0x20, 2, b"wrong").bytes).unwrap();
    assert_eq!(
        (dump.broken(), name(&dump, 99, 0x1000).unwrap().as_str()),
        (1, "right")
    );
}

#[test]
fn what_is_no_jitdump_file_is_refused() {
    let file = Maker::new(true).bytes;
    for len in 0..40 {
        assert!(
            matches!(JitDump::parse(&file[..len]), Err(Error::Jit { .. })),
            "{len}"
        );
    }
    for (at, value) in [(0, 1), (7, 2), (11, 39)] {
        let mut file = file.clone();
        file[at] = value;
        assert!(JitDump::parse(&file).is_err(), "{at}");
    }
}
