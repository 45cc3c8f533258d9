//! Writes perf.data files in perf's format: `tools/perf/util/header.c` and linux/perf_event.h.

use std::collections::BTreeMap;

/// Bits of `perf_event_attr.sample_type`.
pub mod field {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const PERIOD: u64 = 1 << 8;
    pub const RAW: u64 = 1 << 10;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of features.
pub mod feature {
    pub const TRACING_DATA: u32 = 1;
    pub const ARCH: u32 = 6;
    pub const EVENT_DESC: u32 = 12;
    pub const DIR_FORMAT: u32 = 24;
}

pub const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();
pub const CONTEXT_USER: u64 = (-512i64).cast_unsigned();
pub const IN_KERNEL: u16 = 1;
pub const IN_USER: u16 = 2;

const SAMPLE: u32 = 9;
const ATTR_SIZE: usize = 112;

/// An event. All its samples have the same fields.
#[derive(Clone)]
pub struct Event {
    pub name: &'static str,
    pub kind: u32,
    pub config: u64,
    pub period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub registers: u64,
    pub id: u64,
}

impl Event {
    /// An event of the CPU with a fixed period. Its samples have an id, their instruction, thread and time, and these fields.
    pub fn new(id: u64, name: &'static str, fields: u64) -> Self {
        use field::{IDENTIFIER, IP, TID, TIME};
        Self {
            name,
            kind: 0,
            config: id,
            period: 1_000,
            sample_type: IDENTIFIER | IP | TID | TIME | fields,
            read_format: 0,
            registers: 0,
            id,
        }
    }

    fn attr(&self) -> Vec<u8> {
        // The flag sample_id_all.
        let flags = 1 << 18;
        let mut words = vec![
            u64::from(self.kind) | (ATTR_SIZE as u64) << 32,
            self.config,
            self.period,
            self.sample_type,
            self.read_format,
            flags,
        ];
        words.resize(ATTR_SIZE / 8, 0);
        words[10] = self.registers;
        bytes(&words)
    }
}

#[derive(Clone, Default)]
pub struct PerfFile {
    pub events: Vec<Event>,
    pub features: BTreeMap<u32, Vec<u8>>,
    pub records: Vec<u8>,
}

pub fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// `struct perf_header_string`.
pub fn string(text: &str) -> Vec<u8> {
    let mut padded = text.as_bytes().to_vec();
    padded.resize((text.len() + 1).next_multiple_of(64), 0);
    let len = u32::try_from(padded.len()).unwrap();
    [&len.to_le_bytes()[..], &padded].concat()
}

/// A record.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(body.len() + 8).unwrap();
    let header = [
        &kind.to_le_bytes()[..],
        &misc.to_le_bytes(),
        &size.to_le_bytes(),
    ];
    [&header.concat(), body].concat()
}

/// Raw data in a sample: the size, the content, and padding to a word.
pub fn raw(content: &[u8]) -> Vec<u8> {
    let words = (content.len() + 4).div_ceil(8);
    let size = u32::try_from(words * 8 - 4).unwrap();
    let mut raw = [&size.to_le_bytes()[..], content].concat();
    raw.resize(words * 8, 0);
    raw
}

/// The format of a tracepoint as perf stores it: `tools/perf/util/trace-event-info.c`.
pub fn tracing_data(id: u64, system: &str, name: &str) -> Vec<u8> {
    let file = |content: &str| [&bytes(&[content.len() as u64]), content.as_bytes()].concat();
    let one = 1u32.to_le_bytes();
    [
        b"\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0header_page\0",
        &file("a page")[..],
        b"header_event\0",
        &file("an event"),
        // No files of ftrace itself, and one subsystem with one event.
        &0u32.to_le_bytes(),
        &one,
        system.as_bytes(),
        b"\0",
        &one,
        &file(&format!("name: {name}\nID: {id}\nformat:\n")),
    ]
    .concat()
}

impl PerfFile {
    pub fn new(events: &[Event]) -> Self {
        let mut file = Self {
            events: events.to_vec(),
            ..Self::default()
        };
        let mut names = u32::try_from(events.len()).unwrap().to_le_bytes().to_vec();
        names.extend((ATTR_SIZE as u32).to_le_bytes());
        for event in events {
            names.extend(event.attr());
            names.extend(1u32.to_le_bytes());
            names.extend(string(event.name));
            names.extend(event.id.to_le_bytes());
        }
        file.features.insert(feature::EVENT_DESC, names);
        file.features.insert(feature::ARCH, string("x86_64"));
        file
    }

    pub fn add(&mut self, kind: u32, misc: u16, body: &[u8]) {
        self.records.extend(record(kind, misc, body));
    }

    /// The fields that `sample_id_all` appends.
    fn id(&self, pid: u32) -> Vec<u8> {
        let task = u64::from(pid) | u64::from(pid) << 32;
        bytes(&[task, 0, self.events[0].id])
    }

    pub fn comm(&mut self, pid: u32, name: &str) {
        let mut text = name.as_bytes().to_vec();
        text.resize((name.len() + 1).next_multiple_of(8), 0);
        let task = u64::from(pid) | u64::from(pid) << 32;
        let body = [bytes(&[task]), text, self.id(pid)].concat();
        self.add(3, 0, &body);
    }

    /// Adds a mapping of a process, with the protection of mmap(2).
    pub fn map(&mut self, pid: u32, start: u64, len: u64, prot: u32, path: &str) {
        let mut text = path.as_bytes().to_vec();
        text.resize((path.len() + 1).next_multiple_of(8), 0);
        let task = u64::from(pid) | u64::from(pid) << 32;
        let access = u64::from(prot) | 2 << 32;
        let fields = bytes(&[task, start, len, 0, 0, 0, 0, access]);
        let body = [fields, text, self.id(pid)].concat();
        self.add(10, IN_USER, &body);
    }

    /// Adds a sample of an event. `rest` has the event's fields after the time.
    pub fn sample(&mut self, id: u64, misc: u16, (pid, time): (u32, u64), ip: u64, rest: &[u8]) {
        let task = u64::from(pid) | u64::from(pid) << 32;
        let fields = bytes(&[id, ip, task, time]);
        self.add(SAMPLE, misc, &[&fields, rest].concat());
    }

    /// The file as written by `perf record -o FILE`.
    pub fn to_bytes(&self) -> Vec<u8> {
        const HEADER: u64 = 104;
        const ENTRY: u64 = ATTR_SIZE as u64 + 16;
        let count = self.events.len() as u64;
        let attrs_at = HEADER + 8 * count;
        let attrs_len = count * ENTRY;
        let records_at = attrs_at + attrs_len;
        let bits = self.features.keys().fold(0, |bits, bit| bits | 1 << bit);
        let size = self.records.len() as u64;
        let mut file = b"PERFILE2".to_vec();
        let header = [HEADER, ENTRY, attrs_at, attrs_len, records_at, size];
        file.extend(bytes(&header));
        file.extend(bytes(&[0, 0, bits, 0, 0, 0]));
        file.extend(self.events.iter().flat_map(|event| bytes(&[event.id])));
        for (place, event) in (0..).zip(&self.events) {
            file.extend(event.attr());
            file.extend(bytes(&[HEADER + 8 * place, 8]));
        }
        file.extend(&self.records);
        let mut at = file.len() as u64 + 16 * self.features.len() as u64;
        for section in self.features.values() {
            file.extend(bytes(&[at, section.len() as u64]));
            at += section.len() as u64;
        }
        file.extend(self.features.values().flatten());
        file
    }

    /// The output of `perf record -o -`.
    pub fn to_pipe(&self) -> Vec<u8> {
        const HEADER_ATTR: u32 = 64;
        const HEADER_TRACING_DATA: u32 = 66;
        const HEADER_FEATURE: u32 = 80;
        let mut file = [b"PERFILE2", &16u64.to_le_bytes()[..]].concat();
        for event in &self.events {
            let body = [event.attr(), bytes(&[event.id])].concat();
            file.extend(record(HEADER_ATTR, 0, &body));
        }
        for (bit, section) in &self.features {
            if *bit == feature::TRACING_DATA {
                // The content follows the record, padded to a word.
                let mut content = section.clone();
                content.resize(section.len().next_multiple_of(8), 0);
                let size = bytes(&[content.len() as u64]);
                file.extend(record(HEADER_TRACING_DATA, 0, &size));
                file.extend(content);
                continue;
            }
            let body = [&bytes(&[u64::from(*bit)]), &section[..]].concat();
            file.extend(record(HEADER_FEATURE, 0, &body));
        }
        file.extend(&self.records);
        file
    }
}
