//! Writes a perf.data file in simpleperf's format: `record_file_writer.cpp` of system/extras/simpleperf.

/// `enum DsoType`.
#[derive(Clone, Copy)]
pub enum FileKind {
    Kernel = 0,
    Elf = 2,
    Dex = 3,
}

pub struct Symbol {
    pub vaddr: u64,
    pub len: u64,
    pub name: &'static str,
}

/// A file of the feature FILE2.
pub struct SourceFile {
    pub path: &'static str,
    pub kind: FileKind,
    pub min_vaddr: u64,
    /// The file offset of `min_vaddr`.
    pub place: u64,
    pub symbols: Vec<Symbol>,
}

pub struct SimpleperfFile {
    records: Vec<u8>,
    meta_info: Vec<u8>,
    pub files: Vec<SourceFile>,
}

/// IP, TID, TIME, CALLCHAIN, ID, CPU, PERIOD.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 0x20 | 0x40 | 0x80 | 0x100;
/// `PERF_FORMAT_LOST`, which perf sets.
const FORMAT_LOST: u64 = 1 << 4;
const ID: u64 = 77;
const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512i64).cast_unsigned();

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// A NUL-terminated text, padded to words.
fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
    bytes
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(tag: u64, value: u64, out: &mut Vec<u8>) {
    varint(tag << 3, out);
    varint(value, out);
}

fn bytes(tag: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(tag << 3 | 2, out);
    varint(value.len() as u64, out);
    out.extend(value);
}

impl SimpleperfFile {
    pub fn new(meta_info: &[(&str, &str)]) -> Self {
        let texts = meta_info.iter().flat_map(|(key, value)| [key, value]);
        Self {
            records: Vec::new(),
            meta_info: texts
                .flat_map(|text| [text.as_bytes(), b"\0"].concat())
                .collect(),
            files: Vec::new(),
        }
    }

    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let size = u16::try_from(body.len() + 8).unwrap();
        self.records.extend(kind.to_le_bytes());
        self.records.extend(misc.to_le_bytes());
        self.records.extend(size.to_le_bytes());
        self.records.extend(body);
    }

    /// The fields that `sample_id_all` appends: task, time, id, CPU.
    fn id(pid: u32) -> Vec<u8> {
        words(&[pair(pid, pid), 0, ID, 0])
    }

    /// Adds a record: the kernel lost `count` records before this time.
    pub fn lost(&mut self, time: u64, count: u64) {
        self.record(2, 0, &words(&[ID, count, 0, time, ID, 0]));
    }

    /// Adds a record of losses as perf writes it when it ends. `misc` gives the reason.
    pub fn lost_in_all(&mut self, misc: u16, count: u64) {
        self.record(13, misc, &[words(&[count]), Self::id(0)].concat());
    }

    pub fn comm(&mut self, pid: u32, name: &str) {
        let body = [words(&[pair(pid, pid)]), padded(name), Self::id(pid)].concat();
        self.record(3, 0, &body);
    }

    pub fn map(&mut self, pid: u32, start: u64, len: u64, pgoff: u64, path: &str) {
        let fields = [pair(pid, pid), start, len, pgoff, 0, 0, 0, pair(5, 2)];
        let body = [words(&fields), padded(path), Self::id(pid)].concat();
        self.record(10, 2, &body);
    }

    pub fn map_kernel(&mut self, start: u64, len: u64, path: &str) {
        let fields = [u64::MAX, start, len, start];
        let body = [words(&fields), padded(path), Self::id(0)].concat();
        self.record(1, 1, &body);
    }

    pub fn sample(&mut self, pid: u32, time: u64, kernel: &[u64], user: &[u64]) {
        let mut chain = Vec::new();
        if !kernel.is_empty() {
            chain.push(CONTEXT_KERNEL);
            chain.extend(kernel);
        }
        chain.push(CONTEXT_USER);
        chain.extend(user);
        let ip = *kernel.first().unwrap_or(&user[0]);
        let fields = [ip, pair(pid, pid), time, ID, 0, 1_000, chain.len() as u64];
        let misc = if kernel.is_empty() { 2 } else { 1 };
        self.record(9, misc, &words(&[&fields[..], &chain].concat()));
    }

    fn file2(&self) -> Vec<u8> {
        let mut section = Vec::new();
        for file in &self.files {
            let mut message = Vec::new();
            bytes(1, file.path.as_bytes(), &mut message);
            number(2, file.kind as u64, &mut message);
            number(3, file.min_vaddr, &mut message);
            for symbol in &file.symbols {
                let mut one = Vec::new();
                number(1, symbol.vaddr, &mut one);
                number(2, symbol.len, &mut one);
                bytes(3, symbol.name.as_bytes(), &mut one);
                bytes(4, &one, &mut message);
            }
            if let FileKind::Elf = file.kind {
                let mut place = Vec::new();
                number(1, file.place, &mut place);
                bytes(6, &place, &mut message);
            }
            section.extend(u32::try_from(message.len()).unwrap().to_le_bytes());
            section.extend(message);
        }
        section
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        const HEADER: u64 = 104;
        const ATTR: u64 = 112;
        let attrs_at = HEADER + 8;
        let data_at = attrs_at + ATTR + 16;
        let mut bits = [0u64; 4];
        // The bits of META_INFO and FILE2.
        bits[2] = 1 << (129 - 128) | 1 << (132 - 128);
        let header = [
            u64::from_le_bytes(*b"PERFILE2"),
            HEADER,
            ATTR + 16,
            attrs_at,
            ATTR + 16,
            data_at,
            self.records.len() as u64,
            0,
            0,
        ];
        // Flags for a frequency and for sample_id_all. The event is CPU cycles.
        let flags = 1 << 10 | 1 << 18;
        let mut attr = vec![pair(0, 112), 0, 4_000, SAMPLE_TYPE, FORMAT_LOST, flags];
        attr.resize(14, 0);
        let mut file = words(&[&header[..], &bits, &[ID], &attr, &[HEADER, 8]].concat());
        file.extend(&self.records);
        let sections = [self.meta_info.clone(), self.file2()];
        let mut at = file.len() as u64 + 2 * 16;
        for section in &sections {
            file.extend(words(&[at, section.len() as u64]));
            at += section.len() as u64;
        }
        file.extend(sections.concat());
        file
    }
}
