//! A made-up HotSpot in memory, with the tables of a real build. It has one code heap, two codelets and two threads.

use std::collections::HashMap;

/// Where the memory starts. The first words are those that the library exports, in the order in which they are read.
pub const BASE: u64 = 0x10_0000;
/// How many words that are.
pub const WORDS: u64 = 20;
/// The ids of its threads.
pub const TIDS: [u32; 2] = [11, 12];
/// How many classes it has unloaded.
pub const UNLOADED_CLASSES: u64 = 5;
/// The size of its code in bytes.
pub const CODE_SIZE: u64 = 0x1000;

/// The memory of a made-up VM.
#[derive(Debug, Clone)]
pub struct MadeUpJvm {
    /// What is in memory from [`BASE`] on.
    pub bytes: Vec<u8>,
    /// Where its code is.
    pub code: u64,
    /// Offsets of fields and addresses of static fields, by `TYPE::FIELD`.
    fields: HashMap<String, u64>,
    /// The sizes of types.
    sizes: HashMap<String, u64>,
    /// Where strings are.
    strings: HashMap<String, u64>,
}

/// What a type's name, a field's name or a declared type is in a table: an address, or null.
type Name = u64;

impl MadeUpJvm {
    /// Makes a VM with these tables, in the format of `vm/tests/fixtures/hotspot/tables.py`, of this version.
    pub fn new(tables: &str, major: u32) -> Self {
        Self::with_other_tables(tables, major, tables)
    }

    /// Makes a VM with these tables, which exports other ones.
    pub fn with_other_tables(tables: &str, major: u32, exported: &str) -> Self {
        let mut made = Self {
            bytes: vec![0; (WORDS * 8) as usize],
            code: 0,
            fields: HashMap::new(),
            sizes: HashMap::new(),
            strings: HashMap::new(),
        };
        made.put_tables(tables);
        if exported != tables {
            let fields = made.fields.clone();
            made.put_tables(exported);
            made.fields = fields;
        }
        made.put_version(major);
        made.put_flags();
        made.put_code();
        made.put_counters();
        made.put_threads();
        made
    }

    /// Writes a number of `size` bytes.
    pub fn put(&mut self, address: u64, value: u64, size: usize) {
        let at = (address - BASE) as usize;
        self.bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }

    /// Returns the number of eight bytes at an address.
    pub fn word(&self, address: u64) -> u64 {
        let at = (address - BASE) as usize;
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Returns where an exported word is, by its place in the order.
    pub const fn exported(place: u64) -> u64 {
        BASE + place * 8
    }

    /// Returns the offset of a field, or the address of a static one.
    pub fn field(&self, name: &str) -> u64 {
        *self.fields.get(name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Returns the address of the structure to which a static pointer leads.
    pub fn target(&self, name: &str) -> u64 {
        self.word(self.field(name))
    }

    /// Adds memory, and returns its address.
    pub fn add(&mut self, size: u64) -> u64 {
        let at = self.bytes.len().next_multiple_of(64);
        self.bytes.resize(at + size as usize, 0);
        BASE + at as u64
    }

    /// Returns the address of a string.
    pub fn string(&mut self, text: &str) -> Name {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let address = BASE + self.bytes.len() as u64;
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.strings.insert(text.to_owned(), address);
        address
    }

    /// Returns the address of a static field.
    fn place_of(&mut self, field: &str) -> u64 {
        match self.fields.get(field) {
            Some(known) if *known >= BASE => *known,
            _ => self.add(16),
        }
    }

    fn name(&mut self, text: &str) -> Name {
        match text {
            "-" => 0,
            _ => self.string(text),
        }
    }

    fn put_tables(&mut self, tables: &str) {
        let lines = || tables.lines().map(|line| line.split('\t').collect());
        let of = |kinds: &[&str]| -> Vec<Vec<&str>> {
            lines()
                .filter(|line: &Vec<&str>| kinds.contains(&line[0]))
                .collect()
        };
        let mut entries = Vec::new();
        for line in of(&["field", "static"]) {
            let names = [1, 2, 3].map(|part| self.name(line[part]));
            let (is_static, offset, address) = match line[0] {
                "static" => (1, 0, self.place_of(&format!("{}::{}", line[1], line[2]))),
                _ => (0, line[4].parse().unwrap(), 0),
            };
            let name = format!("{}::{}", line[1], line[2]);
            self.fields.insert(name, offset + address);
            entries.push([names[0], names[1], names[2], is_static, offset, address]);
        }
        self.put_table(0, &[0, 8, 16, 24, 32, 40], &entries);
        let mut entries = Vec::new();
        for line in of(&["type"]) {
            let size = line[2].parse().unwrap();
            self.sizes.insert(line[1].to_owned(), size);
            entries.push([self.name(line[1]), size]);
        }
        self.put_table(8, &[0, 32], &entries);
        let mut entries = Vec::new();
        for line in of(&["constant"]) {
            let value: i64 = line[2].parse().unwrap();
            entries.push([self.name(line[1]), u64::from(value as u32)]);
        }
        self.put_table(12, &[0, 8], &entries);
        let long = [[self.name("LONG"), u64::MAX]];
        self.put_table(16, &[0, 8], &long);
    }

    /// Writes a table, and the exported words that describe it, of which `first` is the first one.
    fn put_table<const N: usize>(&mut self, first: u64, offsets: &[u64; N], entries: &[[u64; N]]) {
        let stride = offsets[N - 1] + 8;
        let table = self.add(stride * (entries.len() as u64 + 1));
        self.put(Self::exported(first), table, 8);
        self.put(Self::exported(first + 1), stride, 8);
        for (place, offset) in (first + 2..).zip(offsets) {
            self.put(Self::exported(place), *offset, 8);
        }
        for (at, entry) in (table..).step_by(stride as usize).zip(entries) {
            for (offset, part) in offsets.iter().zip(entry) {
                self.put(at + offset, *part, 8);
            }
        }
    }

    fn put_version(&mut self, major: u32) {
        let release = self.string(&format!("{major}.0.1+2-Made-up"));
        self.put(self.field("Abstract_VM_Version::_s_vm_release"), release, 8);
        let address = self.field("Abstract_VM_Version::_vm_major_version");
        self.put(address, major.into(), 4);
    }

    fn put_flags(&mut self) {
        let flags = [
            ("Unknown", 1),
            ("UseSerialGC", 0),
            ("UseG1GC", 1),
            ("UseZGC", 0),
            ("UseCompressedClassPointers", 1),
            ("SegmentedCodeCache", 0),
            ("CodeEntryAlignment", 32),
            ("DebugNonSafepoints", 0),
        ];
        let size = self.sizes["JVMFlag"];
        let table = self.add(size * (flags.len() as u64 + 1));
        for (flag, (name, value)) in (table..).step_by(size as usize).zip(flags) {
            let (name, address) = (self.string(name), self.add(8));
            self.put(address, value, 8);
            self.put(flag + self.field("JVMFlag::_name"), name, 8);
            self.put(flag + self.field("JVMFlag::_addr"), address, 8);
        }
        self.put(self.field("JVMFlag::flags"), table, 8);
        let count = flags.len() as u64 + 1;
        self.put(self.field("JVMFlag::numFlags"), count, 8);
    }

    /// Writes a code heap with the interpreter in it.
    fn put_code(&mut self) {
        self.code = self.add(CODE_SIZE);
        let segments = self.add(64);
        let heap = self.add(self.sizes["CodeHeap"]);
        for (space, start, size) in [
            ("CodeHeap::_memory", self.code, CODE_SIZE),
            ("CodeHeap::_segmap", segments, 64),
        ] {
            let space = heap + self.field(space);
            for (low, high) in [("_low", "_high"), ("_low_boundary", "_high_boundary")] {
                self.put(
                    space + self.field(&format!("VirtualSpace::{low}")),
                    start,
                    8,
                );
                let end = start + size;
                self.put(space + self.field(&format!("VirtualSpace::{high}")), end, 8);
            }
        }
        self.put(heap + self.field("CodeHeap::_log2_segment_size"), 7, 4);
        let (list, data) = (self.add(24), self.add(16));
        self.put(data, heap, 8);
        self.put(list + self.field("GrowableArrayBase::_len"), 1, 4);
        self.put(list + self.field("GrowableArray<int>::_data"), data, 8);
        self.put(self.field("CodeCache::_heaps"), list, 8);
        let returns = self.field("StubRoutines::_call_stub_return_address");
        self.put(returns, self.code + 0x800, 8);
        for name in [
            "CompressedKlassPointers::_narrow_klass._base",
            "CompressedKlassPointers::_base",
        ] {
            if let Some(base) = self.fields.get(name) {
                self.put(*base, 0x8_0000_0000, 8);
            }
        }
        self.put_interpreter();
    }

    fn put_interpreter(&mut self) {
        let queue = self.add(64);
        for (name, value, size) in [
            ("_stub_buffer", self.code, 8),
            ("_buffer_limit", CODE_SIZE, 4),
            ("_queue_begin", 0, 4),
            ("_queue_end", 0xe0, 4),
            ("_number_of_stubs", 2, 4),
        ] {
            self.put(
                queue + self.field(&format!("StubQueue::{name}")),
                value,
                size,
            );
        }
        for (at, size, description, bytecode) in [
            (self.code, 0x60, "iload", 21),
            (self.code + 0x60, 0x80, "error exits", u64::MAX),
        ] {
            let description = self.string(description);
            self.put(at + self.field("InterpreterCodelet::_size"), size, 4);
            self.put(
                at + self.field("InterpreterCodelet::_description"),
                description,
                8,
            );
            self.put(
                at + self.field("InterpreterCodelet::_bytecode"),
                bytecode,
                4,
            );
        }
        self.put(self.field("AbstractInterpreter::_code"), queue, 8);
    }

    fn put_threads(&mut self) {
        let (list, threads) = (self.add(self.sizes["ThreadsList"]), self.add(16));
        for (place, tid) in (threads..).step_by(8).zip(TIDS) {
            let thread = self.add(self.sizes["JavaThread"]);
            let os_thread = self.add(self.sizes["OSThread"]);
            let inherited = self.fields.get("Thread::_osthread").copied();
            let member = inherited.unwrap_or_else(|| self.field("JavaThread::_osthread"));
            self.put(place, thread, 8);
            self.put(thread + member, os_thread, 8);
            self.put(
                os_thread + self.field("OSThread::_thread_id"),
                tid.into(),
                4,
            );
        }
        self.put(
            list + self.field("ThreadsList::_length"),
            TIDS.len() as u64,
            4,
        );
        self.put(list + self.field("ThreadsList::_threads"), threads, 8);
        self.put(self.field("ThreadsSMRSupport::_java_thread_list"), list, 8);
    }

    /// Writes the counters: a string, and how many classes were unloaded.
    fn put_counters(&mut self) {
        let header = [0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        let memory = self.add(64);
        self.put(memory, u64::from_le_bytes(header), 8);
        self.put(memory + 24, 64, 4);
        self.put(memory + 28, 2, 4);
        for (name, value) in [
            (
                "java.property.java.vm.name",
                u64::from_le_bytes(*b"Made up\0"),
            ),
            ("java.cls.unloadedClasses", UNLOADED_CLASSES),
        ] {
            let (entry, size) = (self.add(64), 64);
            for (offset, number) in [(0, size), (4, 20), (16, 56)] {
                self.put(entry + offset, number, 4);
            }
            for (at, byte) in (entry + 20..).zip(name.bytes()) {
                self.put(at, byte.into(), 1);
            }
            self.put(entry + 56, value, 8);
        }
        self.put(self.field("PerfMemory::_start"), memory, 8);
    }
}
