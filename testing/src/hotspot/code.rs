//! Made-up code of a HotSpot in memory: a code heap with a compiled method and an adapter, and the methods that are in it.

use std::collections::HashMap;

/// Where the memory starts: with the segment map of the code heap, which has the addresses from here on.
pub const CODE_BASE: u64 = 0x80_0000;
/// The size of the code heap in bytes, and of its segments.
pub const HEAP_SIZE: u64 = 0x2000;
/// The size of a segment, as a power of two.
pub const LOG2_SEGMENT: u8 = 7;
/// The blocks of the compiled method and of an adapter.
const BLOCKS: [u64; 2] = [CODE_BASE + 0x100, CODE_BASE + 0x900];
/// The first instruction of the compiled method.
pub const CODE: u64 = CODE_BASE + 0x290;
/// The end of its blob.
pub const NMETHOD_END: u64 = CODE_BASE + 0x900;
/// The number of its compilation.
pub const COMPILE_ID: u32 = 77;

/// The memory of made-up code.
#[derive(Debug, Clone)]
pub struct MadeUpCode {
    /// What is in memory from [`CODE_BASE`] on.
    pub bytes: Vec<u8>,
    /// The blob of the compiled method.
    pub nmethod: u64,
    /// That of an adapter.
    pub adapter: u64,
    /// The methods `org.example.App.outer`, which is compiled, and `org.example.App$$Lambda$14.inner`, which is inlined into it.
    pub outer: u64,
    /// The second one.
    pub inner: u64,
    /// The native method `java.lang.Object.hash`.
    pub native: u64,
    /// Numbers below this one are single bytes in compressed data. What is subtracted from bytes.
    excluded: u8,
    /// Offsets and sizes of members, by `TYPE::FIELD`.
    fields: HashMap<String, (u64, u64)>,
    /// Sizes of types.
    sizes: HashMap<String, u64>,
}

impl MadeUpCode {
    /// Makes code of a HotSpot of this version with these tables, in the format of `vm/tests/fixtures/hotspot/tables.py`.
    pub fn new(tables: &str, major: u32) -> Self {
        let mut made = Self {
            bytes: vec![0; HEAP_SIZE as usize],
            nmethod: 0,
            adapter: 0,
            outer: 0,
            inner: 0,
            native: 0,
            excluded: u8::from(major >= 20),
            fields: HashMap::new(),
            sizes: HashMap::new(),
        };
        made.parse(tables);
        let header = made.sizes["HeapBlock"];
        let [nmethod, adapter] = BLOCKS.map(|block| block + header);
        (made.nmethod, made.adapter) = (nmethod, adapter);
        made.outer = made.put_class(
            "org/example/App",
            "outer",
            "(I)I",
            0x9,
            &[0xff, 0, 40, 0x21],
        );
        let lambda = "org/example/App$$Lambda$14+0x0000000800c03000";
        made.inner = made.put_class(lambda, "inner", "()V", 0x1001, &[0x0f]);
        made.native = made.put_class("java/lang/Object", "hash", "()I", 0x101, &[]);
        made.put_heap();
        let code = CODE..CODE + 0x100;
        made.put_blob(nmethod, NMETHOD_END - nmethod, "nmethod", code);
        let code = adapter + 0x80..adapter + 0xf0;
        made.put_blob(adapter, 0xf0, "I2C/C2I adapters", code);
        made.put_nmethod();
        // Memory is readable or not by pages.
        made.bytes
            .resize(made.bytes.len().next_multiple_of(1 << 12), 0);
        made
    }

    /// Writes a number of `size` bytes.
    pub fn put(&mut self, address: u64, value: u64, size: u64) {
        let at = (address - CODE_BASE) as usize;
        let bytes = &value.to_le_bytes()[..size as usize];
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Returns the offset of a member.
    pub fn offset(&self, name: &str) -> u64 {
        self.fields[name].0
    }

    /// Writes a member of a structure.
    pub fn put_member(&mut self, structure: u64, name: &str, value: u64) {
        let (offset, size) = *self.fields.get(name).unwrap_or_else(|| panic!("no {name}"));
        self.put(structure + offset, value, size);
    }

    /// Writes a member of a structure under one of the names that it has in different versions.
    fn put_one_of(&mut self, structure: u64, names: [&str; 2], value: u64) {
        let known = names.iter().find(|name| self.fields.contains_key(**name));
        self.put_member(structure, known.unwrap(), value);
    }

    fn parse(&mut self, tables: &str) {
        let lines = || {
            tables
                .lines()
                .map(|line| line.split('\t').collect::<Vec<_>>())
        };
        for line in lines().filter(|line| line[0] == "type") {
            self.sizes
                .insert(line[1].to_owned(), line[2].parse().unwrap());
        }
        for line in lines().filter(|line| line[0] == "field") {
            let declared = line[3].trim_start_matches("volatile ");
            let known = [line[3], declared]
                .iter()
                .find_map(|it| self.sizes.get(*it));
            let size = known.copied().unwrap_or(match declared {
                "AccessFlags" => 2,
                _ => 8,
            });
            let field = (line[4].parse().unwrap(), size);
            self.fields
                .insert(format!("{}::{}", line[1], line[2]), field);
        }
    }

    /// Adds memory, and returns its address.
    pub fn add(&mut self, bytes: &[u8]) -> u64 {
        let at = self.bytes.len().next_multiple_of(16);
        self.bytes.resize(at, 0);
        self.bytes.extend_from_slice(bytes);
        CODE_BASE + at as u64
    }

    fn add_zeros(&mut self, size: u64) -> u64 {
        self.add(&vec![0; size as usize])
    }

    fn symbol(&mut self, text: &str) -> u64 {
        let body = self.offset("Symbol::_body[0]");
        let symbol = self.add_zeros(body + text.len() as u64);
        self.put_member(symbol, "Symbol::_length", text.len() as u64);
        let at = (symbol + body - CODE_BASE) as usize;
        self.bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        symbol
    }

    /// Adds a class without methods, and returns its `Klass`.
    pub fn add_class(&mut self, name: &str) -> u64 {
        let name = self.symbol(name);
        let klass = self.add_zeros(self.sizes["Klass"]);
        self.put_member(klass, "Klass::_name", name);
        klass
    }

    /// Adds a class with a method of 16 bytes of bytecode, and returns the method. `lines`: its table, without the end; none: it is
    /// native.
    fn put_class(
        &mut self,
        class: &str,
        name: &str,
        signature: &str,
        access: u64,
        lines: &[u8],
    ) -> u64 {
        let texts = [class, name, signature, "App.java"].map(|text| self.symbol(text));
        let pool_size = self.sizes["ConstantPool"];
        let pool = self.add_zeros(pool_size + 8 * 5);
        for (index, symbol) in (1..).zip(texts) {
            self.put(pool + pool_size + 8 * index, symbol, 8);
        }
        let klass = self.add_class(class);
        self.put_member(pool, "ConstantPool::_pool_holder", klass);
        self.put_member(pool, "ConstantPool::_length", 5);
        self.put_member(pool, "ConstantPool::_source_file_name_index", 4);
        let bytecode = if lines.is_empty() { 0 } else { 16 };
        let header = self.sizes["ConstMethod"];
        let table: Vec<u8> = match self.excluded {
            0 => lines.to_vec(),
            // The numbers behind an escape.
            _ => lines
                .iter()
                .enumerate()
                .map(|(at, byte)| byte + u8::from((1..3).contains(&at) && lines[0] == 0xff))
                .collect(),
        };
        let size = (header + bytecode + table.len() as u64 + 1).next_multiple_of(8);
        let constant = self.add_zeros(size);
        let at = (constant + header + bytecode - CODE_BASE) as usize;
        self.bytes[at..at + table.len()].copy_from_slice(&table);
        self.put_member(constant, "ConstMethod::_constants", pool);
        self.put_member(constant, "ConstMethod::_constMethod_size", size / 8);
        self.put_member(constant, "ConstMethod::_code_size", bytecode);
        self.put_member(constant, "ConstMethod::_name_index", 2);
        self.put_member(constant, "ConstMethod::_signature_index", 3);
        let flags = ["ConstMethod::_flags", "ConstMethod::_flags._flags"];
        self.put_one_of(constant, flags, (bytecode != 0).into());
        let method = self.add_zeros(self.sizes["Method"]);
        self.put_member(method, "Method::_constMethod", constant);
        self.put_member(method, "Method::_access_flags", access);
        method
    }

    fn put_heap(&mut self) {
        let free = [0xff; (HEAP_SIZE >> LOG2_SEGMENT) as usize];
        self.bytes[..free.len()].copy_from_slice(&free);
        for (block, segments) in BLOCKS.into_iter().zip([16, 2]) {
            let first = (block - CODE_BASE) >> LOG2_SEGMENT;
            for (segment, hop) in (first..).zip(0..segments) {
                self.put(CODE_BASE + segment, hop, 1);
            }
            self.put_member(block, "HeapBlock::Header::_length", segments);
            self.put_member(block, "HeapBlock::Header::_used", 1);
        }
    }

    fn put_blob(&mut self, blob: u64, size: u64, name: &str, code: std::ops::Range<u64>) {
        let mut text = name.as_bytes().to_vec();
        text.resize(128, 0);
        let name = self.add(&text);
        self.put_member(blob, "CodeBlob::_name", name);
        self.put_member(blob, "CodeBlob::_size", size);
        self.put_member(blob, "CodeBlob::_frame_size", 6);
        self.put_member(blob, "CodeBlob::_frame_complete_offset", 8);
        match self.fields.contains_key("CodeBlob::_code_begin") {
            true => {
                self.put_member(blob, "CodeBlob::_code_begin", code.start);
                self.put_member(blob, "CodeBlob::_code_end", code.end);
            }
            false => {
                self.put_member(blob, "CodeBlob::_code_offset", code.start - blob);
                self.put_member(blob, "CodeBlob::_data_offset", code.end - blob);
            }
        }
    }

    fn put_nmethod(&mut self) {
        let method = ["CompiledMethod::_method", "nmethod::_method"];
        self.put_one_of(self.nmethod, method, self.outer);
        self.put_member(self.nmethod, "nmethod::_entry_bci", u64::MAX);
        self.put_member(self.nmethod, "nmethod::_compile_id", COMPILE_ID.into());
        self.put_member(self.nmethod, "nmethod::_comp_level", 4);
        self.put_member(self.nmethod, "nmethod::_orig_pc_offset", 24);
        let metadata = [self.outer, 0, self.inner].map(u64::to_le_bytes).concat();
        // Sender, method, bytecode index and three more: `outer` at 5, `inner` at 8 in that, `inner` at its entry in that.
        let scopes = [[0, 1, 6, 0, 0, 0], [1, 3, 9, 0, 0, 0], [7, 3, 0, 0, 0, 0]].concat();
        let bytes = scopes.iter().map(|number| number + self.excluded);
        let mut scopes: Vec<u8> = [0xff].into_iter().chain(bytes).collect();
        scopes.resize(24, 0xff);
        let mut pcs = Vec::new();
        for (pc, scope) in [(u32::MAX, 0), (16, 7), (64, 1), (80, 13), (0x7fff_ffff, 0)] {
            pcs.extend([pc, scope, 0, 0].map(u32::to_le_bytes).concat());
        }
        let scopes = scopes.as_slice();
        match self
            .fields
            .contains_key("CompiledMethod::_scopes_data_begin")
        {
            true => self.put_data_in_blob(&metadata, scopes, &pcs),
            false => self.put_data_apart(&metadata, scopes, &pcs),
        }
    }

    fn put_data_in_blob(&mut self, metadata: &[u8], scopes: &[u8], pcs: &[u8]) {
        let start = 0x300;
        let at = (self.nmethod - CODE_BASE + start) as usize;
        let all = [metadata, scopes, pcs].concat();
        self.bytes[at..at + all.len()].copy_from_slice(&all);
        let scopes_at = start + metadata.len() as u64;
        let pcs_at = scopes_at + scopes.len() as u64;
        let end = pcs_at + pcs.len() as u64;
        self.put_member(self.nmethod, "nmethod::_metadata_offset", start);
        let begin = "CompiledMethod::_scopes_data_begin";
        self.put_member(self.nmethod, begin, self.nmethod + scopes_at);
        self.put_member(self.nmethod, "nmethod::_scopes_pcs_offset", pcs_at);
        self.put_member(self.nmethod, "nmethod::_dependencies_offset", end);
        let handler = "CompiledMethod::_deopt_handler_begin";
        self.put_member(self.nmethod, handler, CODE + 0xf0);
    }

    fn put_data_apart(&mut self, metadata: &[u8], scopes: &[u8], pcs: &[u8]) {
        let fixed = self.add(&[&[0; 16], pcs, scopes].concat());
        let changed = self.add(&[&[0; 32], metadata].concat());
        let scopes_at = 16 + pcs.len() as u64;
        let size = scopes_at + scopes.len() as u64;
        self.put_member(self.nmethod, "nmethod::_immutable_data", fixed);
        self.put_member(self.nmethod, "nmethod::_immutable_data_size", size);
        self.put_member(self.nmethod, "nmethod::_scopes_pcs_offset", 16);
        self.put_member(self.nmethod, "nmethod::_scopes_data_offset", scopes_at);
        self.put_member(self.nmethod, "CodeBlob::_mutable_data", changed);
        let size = 32 + metadata.len() as u64;
        self.put_member(self.nmethod, "CodeBlob::_mutable_data_size", size);
        self.put_member(self.nmethod, "CodeBlob::_relocation_size", 32);
        let handler = "nmethod::_deopt_handler_offset";
        self.put_member(self.nmethod, handler, CODE + 0xf0 - self.nmethod);
    }
}
