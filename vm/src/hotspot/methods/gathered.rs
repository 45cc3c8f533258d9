//! How is the memory that many readers need read in few requests?
//!
//! A structure leads to the next one, so a reader needs several reads, one after the other, and each request for memory costs more than its
//! bytes. So many readers run at once, each as far as the memory that is known leads it. What they lack is read in one request, and they run
//! again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use varid_process::reader::{Batch, BatchMemory, MAX_PIECES, MemoryRange, Piece, PieceBytes};
use varid_tunnel::{Memory, TunnelError};

/// The most requests one after the other. The longest chain of structures is that from a code address to the name of an inlined method's class.
const MAX_ROUNDS: usize = 64;
/// The most bytes of a request.
const MAX_BATCH: usize = 1 << 22;
/// The most bytes that are read in all.
const MAX_BYTES: usize = 1 << 26;

/// Memory of which all that readers need at a time is read at once. It is used for as long as what was read may be old.
pub(in crate::hotspot) struct GatheredMemory<'m> {
    memory: &'m dyn BatchMemory,
    /// By address.
    known: RefCell<BTreeMap<u64, Known>>,
    /// What the readers lack: addresses and sizes.
    lacking: RefCell<BTreeMap<u64, usize>>,
    bytes: Cell<usize>,
}

/// Memory that was read before: where it is, and its bytes.
#[derive(Debug, Default)]
pub(in crate::hotspot) struct SeenMemory {
    /// Addresses and sizes.
    ranges: Vec<(u64, usize)>,
    /// The bytes of all ranges, one after the other.
    bytes: Vec<u8>,
}

impl SeenMemory {
    /// Its size in memory, in bytes.
    pub(in crate::hotspot) fn size(&self) -> usize {
        size_of_val(&*self.ranges).saturating_add(self.bytes.len())
    }
}

/// Memory that notes all that is read of it.
pub(in crate::hotspot) struct NotingMemory<'m> {
    memory: &'m dyn Memory,
    seen: RefCell<SeenMemory>,
}

impl<'m> NotingMemory<'m> {
    /// Memory of which nothing has been read yet.
    pub(in crate::hotspot) fn of(memory: &'m dyn Memory) -> Self {
        let seen = RefCell::default();
        Self { memory, seen }
    }

    /// Returns what was read.
    pub(in crate::hotspot) fn into_seen(self) -> SeenMemory {
        self.seen.into_inner()
    }
}

impl Memory for NotingMemory<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        self.memory.read(address, out)?;
        let mut seen = self.seen.borrow_mut();
        seen.ranges.push((address, out.len()));
        seen.bytes.extend_from_slice(out);
        Ok(())
    }
}

/// Memory that was requested.
struct Known {
    /// Fewer bytes than were requested if the rest cannot be read.
    bytes: Option<PieceBytes>,
    requested: usize,
}

impl<'m> GatheredMemory<'m> {
    /// Memory of which nothing has been read.
    pub(in crate::hotspot) fn of(memory: &'m dyn BatchMemory) -> Self {
        Self {
            memory,
            known: RefCell::default(),
            lacking: RefCell::default(),
            bytes: Cell::new(0),
        }
    }

    /// Runs readers until none lacks memory, and returns what they return then. A reader reads all that it can address before it fails.
    pub(in crate::hotspot) fn run<T>(&self, mut readers: impl FnMut(&Self) -> T) -> T {
        for _ in 0..MAX_ROUNDS {
            let outcome = readers(self);
            if !self.read_lacking() {
                return outcome;
            }
        }
        let outcome = readers(self);
        self.lacking.take();
        outcome
    }

    /// Returns true if memory has the bytes that were seen there before. None if not all of it has been read yet.
    pub(in crate::hotspot) fn still_has(&self, seen: &SeenMemory) -> Option<bool> {
        let known = self.known.borrow();
        let mut rest = &*seen.bytes;
        let mut all_known = Some(true);
        for (address, len) in &seen.ranges {
            let (bytes, behind) = rest.split_at_checked(*len).unwrap_or_default();
            rest = behind;
            match known_bytes(&known, *address, *len) {
                KnownBytes::Read(found) if found == bytes => {}
                KnownBytes::Read(_) | KnownBytes::Unreadable => return Some(false),
                KnownBytes::Unknown => {
                    self.request_later(*address, *len);
                    all_known = None;
                }
            }
        }
        all_known
    }

    fn request_later(&self, address: u64, len: usize) {
        let mut lacking = self.lacking.borrow_mut();
        let most = lacking.entry(address).or_default();
        *most = len.max(*most);
    }

    /// Reads what is lacking. Returns false if that is nothing.
    fn read_lacking(&self) -> bool {
        let lacking = self.lacking.take();
        if lacking.is_empty() {
            return false;
        }
        let mut batch = Vec::new();
        let mut size = 0_usize;
        for (address, requested) in lacking {
            if batch.len() >= MAX_PIECES || size.saturating_add(requested) > MAX_BATCH {
                self.request(&std::mem::take(&mut batch));
                size = 0;
            }
            size = size.saturating_add(requested);
            batch.push((address, requested));
        }
        self.request(&batch);
        true
    }

    fn request(&self, ranges: &[(u64, usize)]) {
        let total = ranges.iter().map(|(_, size)| size).sum();
        let total = self.bytes.get().saturating_add(total);
        let pieces = ranges.iter().map(|(address, size)| {
            Piece::Available(MemoryRange {
                address: *address,
                len: u32::try_from(*size).unwrap_or(u32::MAX),
            })
        });
        let batch = Batch {
            pieces: pieces.collect(),
            ..Batch::default()
        };
        let answer = (total <= MAX_BYTES).then(|| self.memory.read_batch(&batch));
        let read = answer.and_then(|answer| answer.ok()?.read);
        let mut pieces = read.into_iter().flat_map(|read| read.pieces);
        let mut known = self.known.borrow_mut();
        for (address, requested) in ranges {
            let bytes = pieces.next().flatten();
            let requested = *requested;
            known.insert(*address, Known { bytes, requested });
        }
        self.bytes.set(total);
    }
}

impl Memory for GatheredMemory<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
        let len = out.len();
        let failed = |reason: &str| TunnelError::Read {
            address,
            len,
            reason: reason.to_owned(),
        };
        match known_bytes(&self.known.borrow(), address, len) {
            KnownBytes::Read(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            KnownBytes::Unreadable => Err(failed("it cannot be read")),
            KnownBytes::Unknown => {
                self.request_later(address, len);
                Err(failed("it has not been read yet"))
            }
        }
    }
}

/// What is known of a range of memory.
enum KnownBytes<'k> {
    Read(&'k [u8]),
    Unreadable,
    /// It was not requested yet.
    Unknown,
}

fn known_bytes(known: &BTreeMap<u64, Known>, address: u64, len: usize) -> KnownBytes<'_> {
    let Some((start, known)) = known.range(..=address).next_back() else {
        return KnownBytes::Unknown;
    };
    let offset = usize::try_from(address.wrapping_sub(*start)).ok();
    let bytes = offset.and_then(|offset| known.bytes.as_ref()?.bytes().get(offset..)?.get(..len));
    match bytes {
        Some(bytes) => KnownBytes::Read(bytes),
        None if *start == address && known.requested >= len => KnownBytes::Unreadable,
        None => KnownBytes::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_process::reader::BatchAnswer;
    use varid_tunnel::ByteMemory;

    const START: u64 = 0x10_0000;

    /// Memory that counts requests.
    struct Counted<'a> {
        memory: ByteMemory<'a>,
        requests: Cell<usize>,
    }

    impl Memory for Counted<'_> {
        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), TunnelError> {
            panic!("a request for one reader alone")
        }
    }

    impl BatchMemory for Counted<'_> {
        fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError> {
            self.requests.set(self.requests.get() + 1);
            self.memory.read_batch(batch)
        }
    }

    fn counted(bytes: &[u8]) -> Counted<'_> {
        let start = START;
        Counted {
            memory: ByteMemory { start, bytes },
            requests: Cell::new(0),
        }
    }

    /// Follows words from one to the next, until one is not in memory. Returns it.
    fn follow(memory: &dyn Memory, from: u64) -> (u64, TunnelError) {
        let mut at = from;
        loop {
            match memory.read_word(at, 8) {
                Ok(next) => at = next,
                Err(error) => return (at, error),
            }
        }
    }

    #[test]
    fn readers_that_run_at_once_take_as_many_requests_as_the_longest_one() {
        // Word N leads to word N + 10.
        let words = (0..100_u64).flat_map(|word| (START + 8 * (word + 10)).to_le_bytes());
        let bytes: Vec<u8> = words.collect();
        let memory = counted(&bytes);
        let gathered = GatheredMemory::of(&memory);
        let ends = gathered.run(|memory| {
            let starts = (0..15).map(|word| START + 8 * word);
            let ends = starts.map(|start| follow(memory, start).0);
            ends.collect::<Vec<_>>()
        });
        let behind = (0..15).map(|word| START + 8 * (100 + word % 10));
        assert_eq!(ends, behind.collect::<Vec<_>>());
        assert_eq!(memory.requests.get(), 11);
        // All of that is known now.
        gathered.run(|memory| follow(memory, START));
        assert_eq!(memory.requests.get(), 11);
    }

    #[test]
    fn of_several_sizes_the_largest_is_read_and_the_others_are_parts_of_it() {
        let bytes: Vec<u8> = (0..=255).collect();
        let memory = counted(&bytes);
        let gathered = GatheredMemory::of(&memory);
        let read = |memory: &dyn Memory, address, len| {
            let mut out = vec![0; len];
            memory.read(address, &mut out).map(|()| out)
        };
        let (short, long) =
            gathered.run(|memory| (read(memory, START + 8, 4), read(memory, START + 8, 40)));
        assert_eq!(short.unwrap(), bytes[8..12]);
        assert_eq!(long.unwrap(), bytes[8..48]);
        assert_eq!(memory.requests.get(), 1);
        let part = gathered.run(|memory| read(memory, START + 44, 4));
        assert_eq!(part.unwrap(), bytes[44..48]);
        assert_eq!(memory.requests.get(), 1);
        let more = gathered.run(|memory| read(memory, START + 44, 8));
        assert_eq!(more.unwrap(), bytes[44..52]);
        assert_eq!(memory.requests.get(), 2);
    }

    #[test]
    fn memory_that_was_seen_is_compared_in_one_request() {
        let bytes: Vec<u8> = (0..=255).collect();
        let memory = counted(&bytes);
        let gathered = GatheredMemory::of(&memory);
        let seen = gathered.run(|memory| {
            let noting = NotingMemory::of(memory);
            let read = noting
                .read_word(START, 8)
                .and(noting.read_word(START + 40, 4));
            // What cannot be read was not seen.
            assert!(noting.read_word(START + 1000, 8).is_err());
            (read.is_ok(), noting.into_seen())
        });
        assert!(seen.0);
        let still_has = |bytes: &[u8]| {
            let memory = counted(bytes);
            let still_has = GatheredMemory::of(&memory).run(|memory| memory.still_has(&seen.1));
            assert_eq!(memory.requests.get(), 1);
            still_has
        };
        assert_eq!(still_has(&bytes), Some(true));
        for (changed, expected) in [(0, false), (7, false), (8, true), (43, false), (44, true)] {
            let mut other = bytes.clone();
            other[changed] ^= 1;
            assert_eq!(still_has(&other), Some(expected), "{changed}");
        }
        assert_eq!(still_has(&bytes[..43]), Some(false));
    }

    #[test]
    fn what_cannot_be_read_is_requested_once() {
        let bytes = [7; 100];
        let memory = counted(&bytes);
        let gathered = GatheredMemory::of(&memory);
        for (address, requests) in [(8, 1), (8, 1), (START + 96, 2)] {
            let (at, error) = gathered.run(|memory| follow(memory, address));
            assert_eq!(at, address);
            assert!(error.to_string().contains("it cannot be read"), "{error}");
            assert_eq!(memory.requests.get(), requests);
        }
    }

    #[test]
    fn readers_without_an_end_are_ended() {
        let memory = counted(&[]);
        let gathered = GatheredMemory::of(&memory);
        let mut address = 0;
        gathered.run(|memory| {
            address += 8;
            follow(memory, address);
        });
        assert_eq!(memory.requests.get(), MAX_ROUNDS);
        let large = |memory: &dyn Memory| {
            let parts = (0..100).map(|part| {
                let mut out = vec![0; 1 << 20];
                memory.read(START + (part << 20), &mut out).is_ok()
            });
            parts.filter(|is_read| *is_read).count()
        };
        let bytes = vec![0; 100 << 20];
        let memory = counted(&bytes);
        let read = GatheredMemory::of(&memory).run(|memory| large(memory));
        assert_eq!(read, MAX_BYTES >> 20);
    }
}
