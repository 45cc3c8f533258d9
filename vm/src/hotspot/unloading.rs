//! How many classes has the VM unloaded?
//!
//! HotSpot counts what it does in memory that `jstat` reads, too: a header, then entries with a name and a value. It counts a class before it frees
//! the class's methods, so memory of methods has other ones only after the count has changed.
//!
//! Source: `jdk.internal.perf` and `perfMemory.hpp`, format 2.0, which JDK 6 and later write.

use super::memory::PagedMemory;
use varid_model::Address;
use varid_tunnel::Memory;

/// The bytes that the memory starts with, and those of a VM whose numbers are little-endian, of format 2.0.
const MAGIC: [u8; 7] = [0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0];
/// The header's size in bytes.
const HEADER: usize = 32;
/// The size of an entry's header in bytes.
const ENTRY_HEADER: u64 = 20;
/// The most entries. JDK 25 has some 500.
const MAX_ENTRIES: u32 = 1 << 12;
/// The name of the entry, with its end.
const NAME: &[u8] = b"java.cls.unloadedClasses\0";
/// What an error would be about. An entry that cannot be read is taken for none.
const WHAT: &str = "PerfMemory::_start";

/// The counter of the classes that a VM has unloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnloadedClasses {
    /// Where the VM counts.
    pub counter: Address,
    /// How many that were when the VM was described.
    pub described: u64,
}

impl UnloadedClasses {
    /// Finds the counter. `start`: where the pointer to the counters' memory is. None if the VM has no such memory (`-XX:-UsePerfData`), or it has
    /// another format.
    pub(super) fn find(start: Address, memory: &PagedMemory<'_>) -> Option<Self> {
        let start = memory.pointer(WHAT, start).ok()?;
        let mut header = [0; HEADER];
        memory.read(WHAT, start, &mut header).ok()?;
        if !header.starts_with(&MAGIC) {
            return None;
        }
        let entries = number(&header, 28)?.min(MAX_ENTRIES);
        let mut entry = start.wrapping_add(number(&header, 24)?.into());
        for _ in 0..entries {
            let mut header = [0; ENTRY_HEADER as usize];
            memory.read(WHAT, entry, &mut header).ok()?;
            let size = u64::from(number(&header, 0)?);
            let within = |offset: u32, bytes: u64| {
                let end = u64::from(offset).checked_add(bytes)?;
                (end <= size).then(|| entry.wrapping_add(offset.into()))
            };
            if size < ENTRY_HEADER {
                return None;
            }
            let mut name = [0; NAME.len()];
            let found = within(number(&header, 4)?, NAME.len() as u64);
            let found = found.and_then(|at| memory.read(WHAT, at, &mut name).ok());
            if found.is_some() && name == NAME {
                let counter = within(number(&header, 16)?, 8)?;
                let mut count = [0; 8];
                memory.read(WHAT, counter, &mut count).ok()?;
                let described = u64::from_le_bytes(count);
                return Some(Self { counter, described });
            }
            entry = entry.wrapping_add(size);
        }
        None
    }

    /// Returns how many it has unloaded by now. None if that cannot be read.
    pub(super) fn now(self, memory: &dyn Memory) -> Option<u64> {
        memory.read_word(self.counter.get(), 8).ok()
    }
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}
