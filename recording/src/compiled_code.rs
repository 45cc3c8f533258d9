//! The session's `compiled-code.data`: instructions that a VM has compiled, as they were when they were first sampled.
//!
//! perf.data has such a sample at its method's bytecode, and the sampled instruction as [`Sample::original_ip`](crate::Sample::original_ip).
//! This file has the code that was there. A VM frees code and uses its memory again, so code is of a process and a time.
//!
//! It is a file of chunks: `code` has pid, time, address (numbers), machine (byte), name (text) and the instructions up to the end of the
//! chunk; `end` has a time (number).

use std::{collections::HashMap, fs::File, ops::Range, path::Path, path::PathBuf};

use varid_model::{Address, IntervalMap, IntervalValue, Machine, MonotonicNs, Pid};

use crate::{
    chunks::{Chunk, ChunkFile, Chunks, FileHead, Payload, put_chunk, put_number, put_text},
    error::{Error, Result},
    regular::open_if_there,
};

/// The name of compiled code inside a session folder.
pub const COMPILED_CODE_DATA: &str = "compiled-code.data";

/// The most bytes of instructions of one piece of code. Of a larger one none are kept.
pub const MAX_CODE: usize = 512 << 10;
/// The most bytes of instructions of a session.
const MAX_SIZE: usize = 32 << 20;
/// The most pieces of code of a session.
const MAX_CODES: usize = 1 << 16;

const HEAD: FileHead = FileHead {
    magic: *b"VARIDCOD",
    version: 1,
    mismatch: "not a compiled-code.data (no VARIDCOD)",
};
/// Chunk: a piece of code.
const CODE: u8 = 1;
/// Chunk: from a time on, no more code was kept.
const END: u8 = 2;

/// Code that a VM has compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCode {
    /// The process.
    pub pid: Pid,
    /// The time of the first sample in it.
    pub since: MonotonicNs,
    /// The address of its first instruction.
    pub start: Address,
    /// The machine of its instructions.
    pub machine: Machine,
    /// What it is, in the VM's terms: `C2 #812 of org.example.App.run`.
    pub name: String,
    /// Its instructions. Empty if they are not known; then its addresses have no other code either.
    pub bytes: Vec<u8>,
}

impl RecordedCode {
    /// The addresses of its instructions. Code without known instructions has the address at which it starts.
    fn addresses(&self) -> Range<Address> {
        self.start..self.start.wrapping_add(self.bytes.len().max(1) as u64)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        put_number(&mut payload, self.pid.get().into());
        put_number(&mut payload, self.since.get());
        put_number(&mut payload, self.start.get());
        payload.push(number_of(self.machine));
        put_text(&mut payload, &self.name);
        payload.extend_from_slice(&self.bytes);
        put_chunk(out, CODE, &payload);
    }

    fn read(payload: &mut Payload<'_>, size: usize) -> std::result::Result<Self, &'static str> {
        let pid = Pid::new(payload.small()?);
        let since = MonotonicNs::new(payload.number()?);
        let start = Address::new(payload.number()?);
        let machine = machine_of(payload.byte()?).ok_or("a machine that is not known")?;
        let name = payload.text()?.to_owned();
        let bytes = payload.bytes(size.saturating_sub(payload.taken()))?;
        match bytes.len() <= MAX_CODE {
            true => Ok(Self {
                pid,
                since,
                start,
                machine,
                name,
                bytes: bytes.to_vec(),
            }),
            false => Err("code of more than 512 KB"),
        }
    }
}

const fn number_of(machine: Machine) -> u8 {
    match machine {
        Machine::X86_64 => 1,
        Machine::Aarch64 => 2,
        Machine::X86 => 3,
        Machine::Arm => 4,
    }
}

const fn machine_of(number: u8) -> Option<Machine> {
    match number {
        1 => Some(Machine::X86_64),
        2 => Some(Machine::Aarch64),
        3 => Some(Machine::X86),
        4 => Some(Machine::Arm),
        _ => None,
    }
}

/// Writes compiled code. [`SessionWriter::create_compiled_code`](crate::SessionWriter::create_compiled_code) makes it.
///
/// Code waits in memory until [`flush`](Self::flush), or until there are 256 KB of it.
#[derive(Debug)]
pub struct RecordedCodeWriter {
    file: ChunkFile,
    codes: usize,
    size: usize,
    has_ended: bool,
}

impl RecordedCodeWriter {
    pub(crate) fn create(path: PathBuf, file: File) -> Self {
        Self {
            file: ChunkFile::new(path, file, HEAD.to_bytes()),
            codes: 0,
            size: 0,
            has_ended: false,
        }
    }

    /// Adds code, unless there is too much of it. From then on, no code is kept, and this returns false.
    ///
    /// # Errors
    ///
    /// 16 MB wait and the disk cannot be written.
    pub fn add(&mut self, code: &RecordedCode) -> Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        let is_small = code.bytes.len() <= MAX_CODE;
        let size = if is_small { code.bytes.len() } else { 0 };
        self.codes = self.codes.saturating_add(1);
        self.size = self.size.saturating_add(size);
        self.has_ended = self.codes > MAX_CODES || self.size > MAX_SIZE;
        let waiting = &mut self.file.waiting;
        if self.has_ended {
            let mut payload = Vec::new();
            put_number(&mut payload, code.since.get());
            put_chunk(waiting, END, &payload);
        } else if is_small {
            code.put(waiting);
        } else {
            let bytes = Vec::new();
            let name = code.name.clone();
            let unknown = RecordedCode {
                bytes,
                name,
                ..*code
            };
            unknown.put(waiting);
        }
        self.file.make_room()?;
        Ok(!self.has_ended)
    }

    /// Writes the code that waits.
    ///
    /// # Errors
    ///
    /// The disk cannot be written. The code continues to wait.
    pub fn flush(&mut self) -> Result<()> {
        self.file.write()
    }
}

/// The compiled code of a session, in order of time.
#[derive(Debug, Default)]
pub struct RecordedCodes {
    codes: Vec<RecordedCode>,
    /// From this time on, it is not known which code there was.
    end: Option<MonotonicNs>,
    damage: Option<Error>,
}

impl RecordedCodes {
    /// Reads the code of a session. None if there is no such file.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(COMPILED_CODE_DATA);
        let Some(file) = open_if_there(&path)? else {
            return Ok(None);
        };
        let mut chunks = Chunks::open(&path, file, HEAD)?;
        let mut found = Self::default();
        let mut size = 0_usize;
        loop {
            match chunks.next_chunk() {
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    let mut payload = Payload::new(chunk.payload);
                    let added = found.add(&chunk, &mut payload, &mut size);
                    let offset = chunk.offset.saturating_add(payload.taken() as u64);
                    if let Err(reason) = added {
                        found.damage = Some(chunks.wrong(offset, reason));
                        break;
                    }
                }
                Err(damage) => {
                    found.damage = Some(damage);
                    break;
                }
            }
        }
        found.codes.sort_by_key(|code| code.since);
        if found.damage.is_some() {
            let last = found.codes.last().map(|code| code.since);
            found.end = last.into_iter().chain(found.end).min();
        }
        Ok(Some(found))
    }

    /// Adds a chunk. `size`: the bytes of all instructions.
    fn add(
        &mut self,
        chunk: &Chunk<'_>,
        payload: &mut Payload<'_>,
        size: &mut usize,
    ) -> std::result::Result<(), &'static str> {
        match chunk.kind {
            CODE => {
                let code = RecordedCode::read(payload, chunk.payload.len())?;
                *size = size.saturating_add(code.bytes.len());
                if self.codes.len() >= MAX_CODES || *size > MAX_SIZE {
                    return Err("more code than a session has");
                }
                self.codes.push(code);
            }
            END => self.end = Some(MonotonicNs::new(payload.number()?)),
            _ => {}
        }
        Ok(())
    }

    /// The code, in order of time.
    #[must_use]
    pub fn codes(&self) -> &[RecordedCode] {
        &self.codes
    }

    /// Takes the code, in order of time.
    #[must_use]
    pub fn into_codes(self) -> Vec<RecordedCode> {
        self.codes
    }

    /// Why code at the end of the file cannot be read. None: all of it was read.
    #[must_use]
    pub const fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }
}

/// The index of code in [`RecordedCodes::codes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordedCodeId(pub usize);

impl IntervalValue for RecordedCodeId {
    fn part(&self, _offset: u64) -> Self {
        *self
    }
}

/// The code that the processes of a session have at a time, which advances.
#[derive(Debug, Default)]
pub struct CodeAtTime {
    next: usize,
    by_process: HashMap<Pid, IntervalMap<RecordedCodeId>>,
}

impl CodeAtTime {
    /// Returns the code that has an address at a time. Times must not decrease from one call to the next.
    pub fn at(
        &mut self,
        codes: &RecordedCodes,
        pid: Pid,
        time: MonotonicNs,
        address: Address,
    ) -> Option<RecordedCodeId> {
        while let Some(code) = codes.codes.get(self.next).filter(|it| it.since <= time) {
            let known = self.by_process.entry(code.pid).or_default();
            known.insert(code.addresses(), RecordedCodeId(self.next));
            self.next = self.next.saturating_add(1);
        }
        let is_known = codes.end.is_none_or(|end| time < end);
        let known = self.by_process.get(&pid).filter(|_| is_known)?;
        Some(known.get(address)?.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn code(pid: u32, since: u64, start: u64, size: usize) -> RecordedCode {
        RecordedCode {
            pid: Pid::new(pid),
            since: MonotonicNs::new(since),
            start: Address::new(start),
            machine: Machine::Aarch64,
            name: format!("C2 #{since} of org.example.App.run"),
            bytes: vec![since as u8; size],
        }
    }

    fn writer(dir: &Path) -> RecordedCodeWriter {
        let path = dir.join(COMPILED_CODE_DATA);
        let file = File::create(&path).unwrap();
        RecordedCodeWriter::create(path, file)
    }

    #[test]
    fn code_comes_back_in_order_of_time() {
        let dir = tempfile::tempdir().unwrap();
        assert!(RecordedCodes::read(dir.path()).unwrap().is_none());
        let (early, late) = (code(1, 5, 0x1000, 16), code(2, 9, 0x2000, 3));
        let mut writer = writer(dir.path());
        assert!(writer.add(&late).unwrap());
        assert!(writer.add(&early).unwrap());
        writer.flush().unwrap();
        let read = RecordedCodes::read(dir.path()).unwrap().unwrap();
        assert_eq!(read.codes(), [early, late]);
        assert!(read.damage().is_none());
    }

    #[test]
    fn an_address_has_the_code_of_its_process_and_time() {
        let codes = RecordedCodes {
            codes: vec![
                code(1, 10, 0x1000, 0x100),
                code(2, 20, 0x1000, 0x100),
                code(1, 30, 0x1080, 0x100),
                // It was too large: nothing is known of its first instruction.
                code(1, 40, 0x1100, 0),
            ],
            end: Some(MonotonicNs::new(60)),
            damage: None,
        };
        let mut now = CodeAtTime::default();
        let mut at = |pid: u32, time, address| {
            let (pid, time) = (Pid::new(pid), MonotonicNs::new(time));
            let found = now.at(&codes, pid, time, Address::new(address));
            found.map(|RecordedCodeId(index)| index)
        };
        assert_eq!(at(1, 9, 0x1000), None);
        assert_eq!(at(1, 10, 0x10ff), Some(0));
        assert_eq!(at(1, 10, 0x1100), None);
        assert_eq!(at(2, 20, 0x1080), Some(1));
        assert_eq!(at(1, 30, 0x1080), Some(2));
        assert_eq!(at(1, 30, 0x107f), Some(0));
        assert_eq!(at(1, 40, 0x1100), Some(3));
        assert_eq!(at(1, 59, 0x1000), Some(0));
        assert_eq!(at(1, 60, 0x1000), None);
    }

    #[test]
    fn code_that_is_too_large_has_no_bytes_and_too_much_of_it_ends_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        assert!(writer.add(&code(1, 1, 0x1000, MAX_CODE + 1)).unwrap());
        for number in 0..MAX_SIZE / MAX_CODE {
            assert!(writer.add(&code(1, 2, number as u64, MAX_CODE)).unwrap());
        }
        assert!(!writer.add(&code(1, 3, 0x1000, 1)).unwrap());
        assert!(!writer.add(&code(1, 4, 0x1000, 1)).unwrap());
        writer.flush().unwrap();
        let read = RecordedCodes::read(dir.path()).unwrap().unwrap();
        assert_eq!(read.codes().len(), 1 + MAX_SIZE / MAX_CODE);
        assert!(read.codes()[0].bytes.is_empty());
        assert_eq!(read.end, Some(MonotonicNs::new(3)));
        assert!(read.damage().is_none());
    }

    #[test]
    fn behind_damage_no_code_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        for time in [10, 20, 30] {
            assert!(writer.add(&code(1, time, time, 1)).unwrap());
        }
        writer.flush().unwrap();
        let path = dir.path().join(COMPILED_CODE_DATA);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let read = RecordedCodes::read(dir.path()).unwrap().unwrap();
        assert_eq!(read.codes().len(), 2);
        assert!(read.damage().is_some());
        let at = |time| {
            let mut now = CodeAtTime::default();
            now.at(&read, Pid::new(1), MonotonicNs::new(time), Address::new(10))
        };
        assert_eq!(at(19), Some(RecordedCodeId(0)));
        assert_eq!(at(20), None);
    }

    proptest! {
        #[test]
        fn any_chunks_are_read_or_are_damage(payloads in vec((0..4_u8, vec(any::<u8>(), 0..40)), 0..20)) {
            let dir = tempfile::tempdir().unwrap();
            let mut bytes = HEAD.to_bytes();
            for (kind, payload) in &payloads {
                put_chunk(&mut bytes, *kind, payload);
            }
            std::fs::write(dir.path().join(COMPILED_CODE_DATA), bytes).unwrap();
            let read = RecordedCodes::read(dir.path()).unwrap().unwrap();
            prop_assert!(read.codes().len() <= payloads.len());
        }
    }
}
