//! Reads the lists of ELF and dex files that a program keeps in its memory for GDB.
//!
//! GDB's JIT interface: the variable `__jit_debug_descriptor` points to a linked list of entries, each with the address and size of an ELF
//! file. ART has a second such list for dex files, `__dex_debug_descriptor`, and additional fields after GDB's: sequence locks, because its
//! readers do not stop the process, and times.
//!
//! The program may change the list while it is read, and may be hostile. Reading ends after [`MAX_ENTRIES`], or at an entry that was read
//! before.

use std::collections::HashSet;
use std::ops::Range;

use crate::{Error, Result};

/// The most entries of a list that are read. ART packs its own entries into a few hundred.
const MAX_ENTRIES: usize = 1 << 16;
/// How often reading is attempted if the list changes meanwhile.
const ATTEMPTS: usize = 4;

/// The layout of the program's structures. All are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JitAbi {
    /// 64-bit pointers.
    Bits64,
    /// 32-bit pointers, `uint64_t` aligned to 8 bytes: ARM and most others.
    Bits32,
    /// 32-bit pointers, `uint64_t` aligned to 4 bytes: x86.
    X86,
}

impl JitAbi {
    const fn pointer(self) -> usize {
        match self {
            Self::Bits64 => 8,
            Self::Bits32 | Self::X86 => 4,
        }
    }

    const fn align_of_u64(self) -> usize {
        match self {
            Self::X86 => 4,
            Self::Bits64 | Self::Bits32 => 8,
        }
    }
}

/// A JIT descriptor that was read from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitDescriptor {
    abi: JitAbi,
    address: u64,
    /// Address of the first entry. 0 if there is none.
    first_entry: u64,
    /// ART's sequence lock over the whole list, which changes with every change of the list. None if the program has none: then changes can
    /// only be detected by reading the list.
    pub seqlock: Option<u32>,
    /// Whether each entry has a lock, too.
    entries_lock: bool,
}

/// A file that the program has registered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JitEntry {
    /// Address of the entry.
    pub address: u64,
    /// The addresses of the file. Its content has not been checked.
    pub symfile: Range<u64>,
    /// When it was registered, in nanoseconds of CLOCK_MONOTONIC. None if the program does not say so; ART does.
    pub time: Option<u64>,
}

/// The entries of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JitList {
    /// The entries from the first to the last, or up to where reading ended.
    pub entries: Vec<JitEntry>,
    /// False if the list changed while it was read, could not be read to its end, or has no end.
    pub is_whole: bool,
}

impl JitDescriptor {
    /// Reads the descriptor at `address`. `read` fills a buffer with bytes of the program's memory, or returns false if it cannot.
    ///
    /// # Errors
    /// [`Error::Jit`] if it cannot be read, is not initialised, or has an unknown version.
    pub fn read(
        abi: JitAbi,
        address: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> bool,
    ) -> Result<Self> {
        let wrong = |problem| Error::Jit {
            what: "JIT descriptor",
            offset: address,
            problem,
        };
        let mut memory = Memory::at(abi, address, read);
        let unreadable = || wrong("it cannot be read");
        let version = memory.u32().ok_or_else(unreadable)?;
        let _action = memory.u32().ok_or_else(unreadable)?;
        let _relevant = memory.pointer().ok_or_else(unreadable)?;
        let first_entry = memory.pointer().ok_or_else(unreadable)?;
        if version != 1 {
            return Err(wrong("a version of GDB's JIT interface that is not known"));
        }
        let mut descriptor = Self {
            abi,
            address,
            first_entry,
            seqlock: None,
            entries_lock: false,
        };
        let mut magic = [0; 8];
        if memory.bytes(&mut magic) && (magic == *b"Android1" || magic == *b"Android2") {
            let (_flags, _size, entry) = (memory.u32(), memory.u32(), memory.u32());
            descriptor.seqlock = memory.u32();
            let with_lock = descriptor.lock_offset().saturating_add(4);
            descriptor.entries_lock = entry.is_some_and(|size| size as usize >= with_lock);
        }
        Ok(descriptor)
    }

    /// Reads the list. If it changes meanwhile, it is read again a few times.
    pub fn list(&self, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> JitList {
        let mut list = JitList::default();
        for _ in 0..ATTEMPTS {
            let Ok(before) = Self::read(self.abi, self.address, read) else {
                return JitList::default();
            };
            let is_locked = before.seqlock.is_some_and(|lock| lock % 2 != 0);
            list = before.walk(read);
            let after = Self::read(self.abi, self.address, read).ok();
            list.is_whole &= !is_locked && after == Some(before);
            if list.is_whole {
                break;
            }
        }
        list
    }

    fn walk(&self, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> JitList {
        let mut list = JitList::default();
        let mut seen = HashSet::new();
        let mut next = self.first_entry;
        while next != 0 {
            if list.entries.len() >= MAX_ENTRIES || !seen.insert(next) {
                return list;
            }
            let Some((entry, following)) = self.entry(next, read) else {
                return list;
            };
            list.entries.extend(entry);
            next = following;
        }
        list.is_whole = true;
        list
    }

    /// Reads an entry, or None if it is not valid, and the address of the next one.
    fn entry(
        &self,
        address: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> bool,
    ) -> Option<(Option<JitEntry>, u64)> {
        let abi = self.abi;
        let mut memory = Memory::at(abi, address, read);
        let next = memory.pointer()?;
        let _previous = memory.pointer()?;
        let start = memory.pointer()?;
        let size = memory.u64()?;
        let entry = |time| {
            let end = start.checked_add(size).filter(|end| *end > start)?;
            Some(JitEntry {
                address,
                symfile: start..end,
                time,
            })
        };
        if self.seqlock.is_none() {
            return Some((entry(None), next));
        }
        let time = memory.u64()?;
        let valid = !self.entries_lock || memory.u32()? % 2 == 0;
        Some((entry(Some(time)).filter(|_| valid), next))
    }

    /// Offset of an entry's own lock: after three pointers, a size and a time.
    const fn lock_offset(&self) -> usize {
        let pointers = self.abi.pointer().saturating_mul(3);
        let size = pointers.next_multiple_of(self.abi.align_of_u64());
        size.saturating_add(16)
    }
}

/// Reads the fields of a structure in order.
struct Memory<'r> {
    abi: JitAbi,
    start: u64,
    address: u64,
    /// The bytes of the structure, read at once. None if that failed: the structure is probably at the end of readable memory.
    whole: Option<[u8; LARGEST]>,
    read: &'r mut dyn FnMut(u64, &mut [u8]) -> bool,
}

/// Size of the largest structure in bytes.
const LARGEST: usize = 48;

impl<'r> Memory<'r> {
    fn at(abi: JitAbi, start: u64, read: &'r mut dyn FnMut(u64, &mut [u8]) -> bool) -> Self {
        let mut bytes = [0; LARGEST];
        let whole = read(start, &mut bytes).then_some(bytes);
        let address = start;
        Self {
            abi,
            start,
            address,
            whole,
            read,
        }
    }

    fn bytes(&mut self, to: &mut [u8]) -> bool {
        let from = self.address;
        let Some(after) = from.checked_add(to.len() as u64) else {
            return false;
        };
        self.address = after;
        let within = from.checked_sub(self.start);
        let within = within.and_then(|within| usize::try_from(within).ok());
        let whole = self.whole.as_ref();
        let known = whole.and_then(|whole| whole.get(within?..)?.get(..to.len()));
        match known {
            Some(known) => {
                to.copy_from_slice(known);
                true
            }
            None => (self.read)(from, to),
        }
    }

    fn u32(&mut self) -> Option<u32> {
        let mut word = [0; 4];
        self.bytes(&mut word).then(|| u32::from_le_bytes(word))
    }

    fn u64(&mut self) -> Option<u64> {
        let align = self.abi.align_of_u64() as u64;
        self.address = self.address.checked_next_multiple_of(align)?;
        let mut word = [0; 8];
        self.bytes(&mut word).then(|| u64::from_le_bytes(word))
    }

    fn pointer(&mut self) -> Option<u64> {
        match self.abi {
            JitAbi::Bits64 => self.u64(),
            JitAbi::Bits32 | JitAbi::X86 => self.u32().map(u64::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ART descriptor at 0x1000, with three entries at 0x2000, 0x2100 and 0x2200.
    fn art() -> Vec<(u64, Vec<u8>)> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut descriptor: Vec<u8> = words(&[1, 0, 0x2000]);
        descriptor.extend(b"Android2");
        for word in [0u32, 56, 48, 6] {
            descriptor.extend(word.to_le_bytes());
        }
        let entry = |next: u64, at: u64, lock: u64| words(&[next, 0, at, 0x80, 77, lock]);
        vec![
            (0x1000, descriptor),
            (0x2000, entry(0x2100, 0x7000, 2)),
            (0x2100, entry(0x2200, 0x8000, 3)),
            (0x2200, entry(0, 0x9000, 4)),
        ]
    }

    fn reader(memory: &[(u64, Vec<u8>)]) -> impl FnMut(u64, &mut [u8]) -> bool {
        move |address, to| {
            memory.iter().any(|(start, bytes)| {
                let Some(from) = address.checked_sub(*start) else {
                    return false;
                };
                let from = from as usize;
                let Some(found) = bytes.get(from..from.saturating_add(to.len())) else {
                    return false;
                };
                to.copy_from_slice(found);
                true
            })
        }
    }

    fn list(memory: &[(u64, Vec<u8>)]) -> Result<(JitDescriptor, JitList)> {
        let mut read = reader(memory);
        let descriptor = JitDescriptor::read(JitAbi::Bits64, 0x1000, &mut read)?;
        Ok((descriptor, descriptor.list(&mut read)))
    }

    #[test]
    fn a_structure_takes_one_reading() {
        let memory = art();
        let (mut readings, mut reader) = (0, reader(&memory));
        let mut read = |address, to: &mut [u8]| {
            readings += 1;
            reader(address, to)
        };
        let descriptor = JitDescriptor::read(JitAbi::Bits64, 0x1000, &mut read).unwrap();
        assert!(descriptor.list(&mut read).is_whole);
        // The descriptor is read three times, each entry once.
        assert_eq!(readings, 6);
        // The descriptor ends at the end of readable memory, so its fields are read one by one.
        let mut cut = art();
        cut[0].1.truncate(24);
        assert!(list(&cut).unwrap().1.is_whole);
    }

    #[test]
    fn an_entry_that_is_being_changed_is_left_out() {
        let (descriptor, list) = list(&art()).unwrap();
        assert_eq!(descriptor.seqlock, Some(6));
        assert!(list.is_whole);
        let found: Vec<_> = list
            .entries
            .iter()
            .map(|entry| entry.symfile.start)
            .collect();
        assert_eq!(found, [0x7000, 0x9000]);
        assert_eq!(list.entries[0].symfile.end, 0x7080);
        assert_eq!(list.entries[0].time, Some(77));
    }

    #[test]
    fn a_list_that_leads_to_itself_or_nowhere_ends() {
        let mut memory = art();
        memory[3].1[0..8].copy_from_slice(&0x2000u64.to_le_bytes());
        let (_, cycle) = list(&memory).unwrap();
        assert_eq!((cycle.entries.len(), cycle.is_whole), (2, false));
        memory[1].1[0..8].copy_from_slice(&u64::MAX.to_le_bytes());
        let (_, nowhere) = list(&memory).unwrap();
        assert_eq!((nowhere.entries.len(), nowhere.is_whole), (1, false));
        // An entry whose size wraps is not valid.
        memory[1].1[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(list(&memory).unwrap().1.entries, []);
        memory[0].1[0] = 2;
        assert!(matches!(list(&memory), Err(Error::Jit { .. })));
        memory.remove(0);
        assert!(matches!(list(&memory), Err(Error::Jit { .. })));
    }

    #[test]
    fn a_locked_list_is_not_whole() {
        let mut memory = art();
        memory[0].1[44] = 7;
        assert!(!list(&memory).unwrap().1.is_whole);
    }

    #[test]
    fn the_size_lies_where_the_machine_aligns_it() {
        for (abi, padding) in [(JitAbi::X86, 0), (JitAbi::Bits32, 4)] {
            let word = |word: u32| word.to_le_bytes().to_vec();
            let descriptor = [1, 0, 0, 0x2000].map(word).concat();
            let entry = [
                [0, 0, 0x7000].map(word).concat(),
                vec![0; padding],
                word(0x40),
                word(0),
            ]
            .concat();
            let memory = [(0x1000, descriptor), (0x2000, entry)];
            let mut read = reader(&memory);
            let descriptor = JitDescriptor::read(abi, 0x1000, &mut read).unwrap();
            assert_eq!(descriptor.seqlock, None);
            let list = descriptor.list(&mut read);
            assert!(list.is_whole, "{abi:?}");
            assert_eq!(list.entries[0].symfile, 0x7000..0x7040, "{abi:?}");
        }
    }
}
