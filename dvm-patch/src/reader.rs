//! Reads a tunnel. Every byte of it may be hostile.

mod head;

use std::mem::{offset_of, size_of};

use crate::abi::{self, CODE_LOCATION, CodeRange, MAGIC, Part, Thread, Trace, TunnelHeader};
use crate::bytes::{Fields, part_at};
use crate::{BytecodeKind, Description, Memory, PublishedBytecode, TunnelError, layout};
use varid_model::{MonotonicNs, Pid};

/// A writer is active for microseconds. If it has not finished after this many attempts, it never will.
const ATTEMPTS: u32 = 64;
/// Maximum size of a tunnel, whatever its header says.
const MAX_SIZE: u64 = 64 << 20;
const MAX_RANGES: u32 = 4096;
const MAX_CODES: u32 = 1 << 16;
const MAX_THREADS: u32 = 1 << 16;
const MAX_TRACES: u32 = 1 << 18;

/// Reads the tunnel in the mapping of `len` bytes at `start`. `pid`: the process's id in its own namespace, to distinguish its own
/// tunnel from an inherited one.
pub fn read_tunnel(
    memory: &dyn Memory,
    start: u64,
    len: u64,
    pid: Pid,
) -> Result<Description, TunnelError> {
    let mut generation = 0;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::yield_now();
        }
        let before = Header::read(memory, start, len)?;
        generation = before.head.generation;
        if generation % 2 == 1 {
            continue;
        }
        let read = before.read_parts(memory, start, pid);
        // The tunnel changed while it was read, so the error may not be the writer's.
        if Header::read(memory, start, len)?.head == before.head {
            return read;
        }
    }
    Err(TunnelError::Changing {
        attempts: ATTEMPTS,
        generation,
    })
}

/// What a table of the tunnel may be.
#[derive(Debug, Clone, Copy)]
struct TableLimits {
    /// Offset of its part in the latest header.
    field: usize,
    /// Size of an entry in bytes.
    entry_size: usize,
    /// The most entries.
    entries: u32,
}

impl TableLimits {
    /// Those of a table of `T`.
    const fn new<T>(field: usize, entries: u32) -> Self {
        Self {
            field,
            entry_size: size_of::<T>(),
            entries,
        }
    }
}

/// The bytes of a table in the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TableSpan {
    start: u64,
    end: u64,
    /// Offset of its part in the header.
    field: usize,
}

/// A header with valid sizes.
struct Header {
    head: TunnelHeader,
    version: head::Version,
}

impl Header {
    fn read(memory: &dyn Memory, start: u64, len: u64) -> Result<Self, TunnelError> {
        let mut bytes = [0; size_of::<TunnelHeader>()];
        let mapped = usize::try_from(len).unwrap_or(usize::MAX);
        let (common, most) = (head::COMMON_START, bytes.len());
        let bytes = bytes
            .get_mut(..mapped.min(most))
            .filter(|bytes| bytes.len() >= common)
            .ok_or(TunnelError::Size {
                claimed: most as u64,
                mapped: len,
            })?;
        memory.read(start, bytes)?;
        let mut fields = Fields::new(bytes);
        let magic = fields.take();
        if magic != MAGIC {
            return Err(TunnelError::Magic { found: magic });
        }
        let (found, header_size) = (fields.u32(), fields.u32());
        let version = head::Version::new(found)
            .filter(|version| version.header_size() == header_size as usize)
            .ok_or(TunnelError::Version { found, header_size })?;
        let bytes = bytes
            .get(..version.header_size())
            .ok_or(TunnelError::Size {
                claimed: version.header_size() as u64,
                mapped: len,
            })?;
        let head = version.parse(bytes);
        if head.size > len || head.size > MAX_SIZE || head.size < bytes.len() as u64 {
            return Err(TunnelError::Size {
                claimed: head.size,
                mapped: len,
            });
        }
        Ok(Self { head, version })
    }

    fn read_parts(
        &self,
        memory: &dyn Memory,
        start: u64,
        pid: Pid,
    ) -> Result<Description, TunnelError> {
        let head = &self.head;
        layout::check(&head.layout)?;
        self.check_parts()?;
        let ranges = self.table(memory, start, &head.ranges)?;
        let codes = self.table(memory, start, &head.codes)?;
        let threads = self.table(memory, start, &head.threads)?;
        let traces = self.table(memory, start, &head.traces)?;
        Ok(Description {
            vm: head.vm,
            layout: head.layout,
            ranges: self.read_ranges(&ranges)?,
            codes: read_codes(&codes, &head.codes)?,
            threads: read_threads(&threads),
            traces: read_traces(&traces),
            control: Some(head.control).filter(|file| file.address != 0),
            calls: Some(head.calls).filter(|file| file.address != 0),
            tactic: head.tactic,
            pid: Pid::new(head.pid),
            time: MonotonicNs::new(head.time),
            inherited: head.pid != pid.get(),
        })
    }

    fn check_parts(&self) -> Result<(), TunnelError> {
        let head = &self.head;
        let ranges = TableLimits::new::<CodeRange>(offset_of!(TunnelHeader, ranges), MAX_RANGES);
        let codes = TableLimits::new::<abi::Code>(offset_of!(TunnelHeader, codes), MAX_CODES);
        let threads = TableLimits::new::<Thread>(offset_of!(TunnelHeader, threads), MAX_THREADS);
        let traces = TableLimits::new::<Trace>(offset_of!(TunnelHeader, traces), MAX_TRACES);
        let mut spans = [
            self.check_part(&head.ranges, ranges)?,
            self.check_part(&head.codes, codes)?,
            self.check_part(&head.threads, threads)?,
            self.check_part(&head.traces, traces)?,
        ];
        spans.sort_unstable();
        let overlap = spans
            .iter()
            .zip(spans.iter().skip(1))
            .find(|(before, after)| before.end > after.start);
        match overlap {
            Some((_, after)) => Err(TunnelError::Malformed {
                offset: after.field as u64,
                what: "a table that overlaps another",
                value: after.start,
            }),
            None => Ok(()),
        }
    }

    /// Checks the part of the header that describes a table, and returns where the table is.
    fn check_part(&self, part: &Part, limits: TableLimits) -> Result<TableSpan, TunnelError> {
        // In an older header the parts are closer to the start.
        let shift = size_of::<TunnelHeader>().saturating_sub(self.version.header_size());
        let field = limits.field.saturating_sub(shift);
        let malformed = |what, value: u32| TunnelError::Malformed {
            offset: field as u64,
            what,
            value: u64::from(value),
        };
        if part.entry_size as usize != limits.entry_size {
            return Err(malformed("entries of another size", part.entry_size));
        }
        if part.capacity > limits.entries {
            return Err(malformed("a table too large", part.capacity));
        }
        if part.count > part.capacity {
            return Err(malformed("more entries than there is room for", part.count));
        }
        if u64::from(part.offset) < u64::from(self.head.header_size) {
            return Err(malformed("a table inside the header", part.offset));
        }
        // At most 2^18 entries of 256 bytes and a 32-bit offset, so this cannot overflow.
        let end = u64::from(part.capacity)
            .saturating_mul(limits.entry_size as u64)
            .saturating_add(u64::from(part.offset));
        if end > self.head.size {
            return Err(malformed("a table beyond the tunnel's end", part.offset));
        }
        Ok(TableSpan {
            start: part.offset.into(),
            end,
            field,
        })
    }

    /// Reads a table's valid entries. The table's part has been checked.
    fn table(&self, memory: &dyn Memory, start: u64, part: &Part) -> Result<Vec<u8>, TunnelError> {
        let len = u64::from(part.count).saturating_mul(u64::from(part.entry_size));
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        if !bytes.is_empty() {
            memory.read(start.wrapping_add(u64::from(part.offset)), &mut bytes)?;
        }
        Ok(bytes)
    }

    fn read_ranges(&self, bytes: &[u8]) -> Result<Vec<CodeRange>, TunnelError> {
        let part = &self.head.ranges;
        let mut ranges = Vec::new();
        for (index, entry) in bytes.chunks_exact(size_of::<CodeRange>()).enumerate() {
            let mut fields = Fields::new(entry);
            let range = CodeRange {
                start: fields.u64(),
                end: fields.u64(),
                kind: fields.u32(),
                rule: self.version.range_rule(fields.u32()),
            };
            let malformed = |what, value| TunnelError::Malformed {
                offset: part_at(part, index),
                what,
                value,
            };
            if range.start >= range.end {
                return Err(malformed("a range that ends before it starts", range.start));
            }
            if !(abi::RANGE_BODY..=abi::RANGE_TRACES).contains(&range.kind) {
                return Err(malformed("a range of unknown kind", u64::from(range.kind)));
            }
            if range.rule >= u32::from(self.head.layout.rule_count) {
                return Err(malformed("a range of no rule", u64::from(range.rule)));
            }
            // A caller is identified by its return address, which lies in the rule's code.
            let rule = self.head.layout.rules().get(range.rule as usize);
            let is_loop = matches!(
                range.kind,
                abi::RANGE_BODY | abi::RANGE_HANDLERS | abi::RANGE_INTERPRETER
            );
            if rule.is_some_and(|rule| {
                is_loop
                    && rule.kind == abi::RULE_AT_SP
                    && (range.start < rule.code_start || range.end > rule.code_end)
            }) {
                return Err(malformed("a range outside its rule's code", range.start));
            }
            ranges.push(range);
        }
        ranges.sort_unstable_by_key(|range| range.start);
        match overlap(ranges.iter().map(|range| (range.start, range.end))) {
            Some(value) => Err(TunnelError::Malformed {
                offset: u64::from(part.offset),
                what: "ranges that overlap",
                value,
            }),
            None => Ok(ranges),
        }
    }
}

fn read_codes(bytes: &[u8], part: &Part) -> Result<Vec<PublishedBytecode>, TunnelError> {
    let mut codes = Vec::new();
    for (index, entry) in bytes.chunks_exact(size_of::<abi::Code>()).enumerate() {
        let mut fields = Fields::new(entry);
        let (start, size, time) = (fields.u64(), fields.u64(), fields.u64());
        let (kind, flags) = (fields.u32(), fields.u32());
        let location: [u8; CODE_LOCATION] = fields.take();
        let malformed = |what, value| TunnelError::Malformed {
            offset: part_at(part, index),
            what,
            value,
        };
        if size == 0 {
            continue;
        }
        if start.checked_add(size).is_none() {
            return Err(malformed("code beyond the last address", size));
        }
        let kind = match kind {
            abi::CODE_DEX => BytecodeKind::Dex,
            abi::CODE_IMAGE => BytecodeKind::Image,
            other => return Err(malformed("code of unknown kind", u64::from(other))),
        };
        let location = location.split(|byte| *byte == 0).next().unwrap_or_default();
        codes.push(PublishedBytecode {
            start,
            size,
            time: MonotonicNs::new(time),
            kind,
            flags,
            location: String::from_utf8_lossy(location).into_owned(),
        });
    }
    codes.sort_unstable_by_key(|code| code.start);
    let spans = codes
        .iter()
        .map(|code| (code.start, code.start.saturating_add(code.size)));
    match overlap(spans) {
        Some(value) => Err(TunnelError::Malformed {
            offset: u64::from(part.offset),
            what: "dex files or images that overlap",
            value,
        }),
        None => Ok(codes),
    }
}

fn read_threads(bytes: &[u8]) -> Vec<Thread> {
    bytes
        .chunks_exact(size_of::<Thread>())
        .map(|entry| {
            let mut fields = Fields::new(entry);
            Thread {
                base: fields.u64(),
                tid: fields.u32(),
                reserved: fields.u32(),
            }
        })
        .filter(|thread| thread.tid != 0)
        .collect()
}

fn read_traces(bytes: &[u8]) -> Vec<Trace> {
    let entries = bytes.chunks_exact(size_of::<Trace>()).map(|entry| {
        let mut fields = Fields::new(entry);
        Trace {
            start: fields.u64(),
            pc: fields.u64(),
        }
    });
    let mut traces: Vec<Trace> = entries.filter(|trace| trace.pc != 0).collect();
    traces.sort_by_key(|trace| trace.start);
    traces.dedup_by_key(|trace| trace.start);
    traces
}

/// Returns the start of the first span that overlaps the previous one. The spans must be sorted.
fn overlap(spans: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    let mut end = 0;
    for (start, next_end) in spans {
        if start < end {
            return Some(start);
        }
        end = next_end;
    }
    None
}

#[cfg(test)]
mod tests;
