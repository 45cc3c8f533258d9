//! Reads the functions in a jitdump file.
//!
//! The format is `tools/perf/Documentation/jitdump-specification.txt` of the kernel: a header,
//! then records, each with its size and time, in the byte order of the machine that wrote it.

use std::collections::HashMap;
use std::sync::Arc;

use super::{CodeMap, JitFunction, Replacement, shown};
use crate::{Error, Frame, Result};

/// `JiTD` in the byte order of the writing machine.
const MAGIC: u32 = 0x4A69_5444;
/// The only version.
const VERSION: u32 = 1;
/// Flag of the header: times are counts of the machine's own counter, not nanoseconds.
const ARCH_TIMESTAMP: u64 = 1;
/// Size of a record's header in bytes: its kind, its size including this header, its time.
const PREFIX: usize = 16;

const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const CODE_CLOSE: u32 = 3;
const CODE_UNWINDING_INFO: u32 = 4;

/// The most bytes of unwind information that are kept. Code that is loaded later has none.
const MAX_UNWINDING: usize = 1 << 26;
/// The most bytes of unwind information for a function. If there is more, it is dropped. V8 and CPython write fewer than 500.
const MAX_EH_FRAME: usize = 1 << 14;

/// A jitdump file, up to the point to which it has been read.
#[derive(Debug, Clone)]
pub struct JitDump {
    big_endian: bool,
    header: usize,
    flags: u64,
    pid: u32,
    map: CodeMap,
    /// Functions by their producer's index, as they were last loaded or moved.
    by_index: HashMap<u64, JitFunction>,
    /// The `.eh_frame` of the function that is loaded next.
    next_eh_frame: Arc<[u8]>,
    /// Size of all unwind information in bytes.
    unwinding: usize,
    broken: usize,
    is_closed: bool,
}

impl JitDump {
    /// Reads a file's header. [`JitDump::feed`] reads the records that follow it.
    ///
    /// # Errors
    /// [`Error::Jit`] if it is not a jitdump file of a known version.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let magic = bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let big_endian = match magic {
            Some(MAGIC) => false,
            Some(magic) if magic.swap_bytes() == MAGIC => true,
            _ => return Err(wrong(0, "the magic number is not that of a jitdump file")),
        };
        let mut read = Read { bytes, big_endian };
        let (Some(_), Some(version), Some(size)) = (read.u32(), read.u32(), read.u32()) else {
            return Err(wrong(4, "the header is cut off"));
        };
        if version != VERSION {
            return Err(wrong(4, "a version of the format that is not known"));
        }
        let (_machine, _padding, pid) = (read.u32(), read.u32(), read.u32());
        let (_time, flags) = (read.u64(), read.u64());
        let (Some(pid), Some(flags)) = (pid, flags) else {
            return Err(wrong(8, "the header is cut off"));
        };
        let size = size as usize;
        if size < bytes.len().saturating_sub(read.bytes.len()) {
            return Err(wrong(8, "the header says that it is shorter than it is"));
        }
        Ok(Self {
            big_endian,
            header: size,
            flags,
            pid,
            map: CodeMap::default(),
            by_index: HashMap::new(),
            next_eh_frame: Arc::default(),
            unwinding: 0,
            broken: 0,
            is_closed: false,
        })
    }

    /// Reads a whole file. A record that is truncated at its end is not read.
    ///
    /// # Errors
    /// [`Error::Jit`] if it is not a jitdump file of a known version.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut dump = Self::new(bytes)?;
        dump.feed(bytes.get(dump.header..).unwrap_or_default());
        Ok(dump)
    }

    /// Reads records that follow the header or the records of the previous call. Returns how many bytes were read, without those of an
    /// incomplete record, and what was replaced.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, Vec<Replacement>) {
        let (mut rest, mut replaced) = (bytes, Vec::new());
        while !self.is_closed {
            let mut read = self.read(rest);
            let (Some(kind), Some(size), Some(time)) = (read.u32(), read.u32(), read.u64()) else {
                break;
            };
            let size = size as usize;
            if size < PREFIX {
                // The start of the next record is unknown.
                self.broken = self.broken.saturating_add(1);
                self.is_closed = true;
                break;
            }
            let Some((record, after)) = rest.split_at_checked(size) else {
                break;
            };
            let body = self.read(record.get(PREFIX..).unwrap_or_default());
            match self.record(kind, time, body) {
                Some(Some(replacement)) => replaced.push(replacement),
                Some(None) => {}
                None => self.broken = self.broken.saturating_add(1),
            }
            rest = after;
        }
        (bytes.len().saturating_sub(rest.len()), replaced)
    }

    /// The frame at an address at a time of the file's clock.
    #[must_use]
    pub fn lookup(&self, time: u64, address: u64) -> Option<Frame<'_>> {
        self.map.frame(time, address)
    }

    /// The functions.
    #[must_use]
    pub const fn map(&self) -> &CodeMap {
        &self.map
    }

    /// Size of the header in bytes, which is the offset of the first record.
    #[must_use]
    pub const fn header_size(&self) -> usize {
        self.header
    }

    /// The process id, in the namespace of the process that wrote the file.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns true if times are counts of the machine's own clock instead of nanoseconds.
    #[must_use]
    pub const fn has_machine_times(&self) -> bool {
        self.flags & ARCH_TIMESTAMP != 0
    }

    /// Number of invalid records.
    #[must_use]
    pub const fn broken(&self) -> usize {
        self.broken
    }

    const fn read<'a>(&self, bytes: &'a [u8]) -> Read<'a> {
        Read {
            bytes,
            big_endian: self.big_endian,
        }
    }

    /// Reads a record and returns what it replaced. The outer None means that the record is broken.
    fn record(&mut self, kind: u32, time: u64, mut body: Read<'_>) -> Option<Option<Replacement>> {
        match kind {
            CODE_LOAD => {
                let eh_frame = std::mem::take(&mut self.next_eh_frame);
                let (_pid, _tid) = (body.u32()?, body.u32()?);
                // `_made_at` is where the code was generated. It equals `address` unless the code runs elsewhere. perf uses `address`.
                let (_made_at, address, size, index) =
                    (body.u64()?, body.u64()?, body.u64()?, body.u64()?);
                let name = body.string()?;
                let range = address..address.checked_add(size)?;
                if (body.bytes.len() as u64) < size || range.is_empty() {
                    return None;
                }
                let code = JitFunction {
                    eh_frame,
                    ..JitFunction::new(range, shown(name), time)
                };
                Some(self.load(index, code))
            }
            CODE_MOVE => {
                let (_pid, _tid) = (body.u32()?, body.u32()?);
                let (_made_at, old, new, size, index) = (
                    body.u64()?,
                    body.u64()?,
                    body.u64()?,
                    body.u64()?,
                    body.u64()?,
                );
                let end = new.checked_add(size)?;
                let known = self.by_index.get(&index)?;
                if known.range.start != old || known.range.end.checked_sub(old)? != size {
                    return None;
                }
                let code = JitFunction {
                    eh_frame: known.eh_frame.clone(),
                    ..JitFunction::new(new..end, known.name.clone(), time)
                };
                self.map.unload(old, time);
                Some(self.load(index, code))
            }
            CODE_CLOSE => {
                self.is_closed = true;
                Some(None)
            }
            CODE_UNWINDING_INFO => {
                self.next_eh_frame = Arc::default();
                let (size, of_hdr, _mapped) = (body.u64()?, body.u64()?, body.u64()?);
                // `.eh_frame_hdr` follows `.eh_frame`.
                let size = usize::try_from(size.checked_sub(of_hdr)?).ok()?;
                let eh_frame = body.bytes.get(..size)?;
                let unwinding = self.unwinding.saturating_add(size);
                if size <= MAX_EH_FRAME && unwinding <= MAX_UNWINDING {
                    (self.next_eh_frame, self.unwinding) = (eh_frame.into(), unwinding);
                }
                Some(None)
            }
            // Ignore source lines, which profiles cannot show, and later additions to the format.
            _ => Some(None),
        }
    }

    fn load(&mut self, index: u64, code: JitFunction) -> Option<Replacement> {
        let (range, from) = (code.range.clone(), code.from);
        let replaced = self.map.holds_any(&range);
        if self.map.load(code.clone()) {
            self.by_index.insert(index, code);
        }
        replaced.then_some(Replacement { range, from })
    }
}

/// The unread part of a record.
#[derive(Debug, Clone, Copy)]
struct Read<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Read<'a> {
    fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        let word = u32::from_le_bytes(*word);
        Some(if self.big_endian {
            word.swap_bytes()
        } else {
            word
        })
    }

    fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        let word = u64::from_le_bytes(*word);
        Some(if self.big_endian {
            word.swap_bytes()
        } else {
            word
        })
    }

    /// Reads a NUL-terminated string.
    fn string(&mut self) -> Option<&'a [u8]> {
        let end = self.bytes.iter().position(|&byte| byte == 0)?;
        let (text, rest) = self.bytes.split_at_checked(end)?;
        self.bytes = rest.get(1..)?;
        Some(text)
    }
}

const fn wrong(offset: u64, problem: &'static str) -> Error {
    Error::Jit {
        what: "jitdump file",
        offset,
        problem,
    }
}

#[cfg(test)]
mod tests;
