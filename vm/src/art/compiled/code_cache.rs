//! Reads the code cache of a process's JIT, with its counters at the time.
//!
//! The cache has a map from the start of code to its method, and another one of the stubs through which native methods are called. The VM
//! may change them during a read. So code that is found here is checked against its header, and the counters before and after show whether
//! the cache has changed meanwhile.

use super::jit_history::JitCounts;
use crate::art::code_format::CodeFormat;
use std::cell::Cell;
use varid_process::reader::{Batch, BatchMemory, MemoryRange, Piece, PieceBytes};
use varid_tunnel::abi::Rule;
use varid_tunnel::{Memory, TunnelError};

/// Size of a map in bytes. The map of stubs lies right before that of methods.
const MAP: u64 = 48;
/// Size of a pointer in bytes.
const POINTER: u32 = 8;
/// Size of the watched number in bytes.
const NUMBER: u32 = 4;
/// How often the cache is looked up before what leads to it is assumed not to be pointers.
const TRIES: usize = 3;

/// The code cache of a VM.
#[derive(Debug)]
pub(super) struct CodeCache {
    rule: Rule,
    /// The release whose compiler writes it.
    pub(super) format: CodeFormat,
    /// Its location at the last read.
    place: Cell<Option<Place>>,
    /// Address of a number that is read together with the cache.
    watched: Cell<Option<u64>>,
    /// The value of that number at the last read.
    number: Cell<Option<u32>>,
}

/// The pointers that lead to a code cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Address of the VM's runtime. 0: there is none yet.
    runtime: u64,
    /// Address of the cache. 0: there is no JIT.
    cache: u64,
}

/// The addresses of a code cache's maps.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheMaps {
    /// From the start of code to its method.
    pub(super) methods: u64,
    /// The stubs of native methods, by the methods' parameters.
    pub(super) stubs: u64,
}

/// The result of reading a code cache.
#[derive(Debug, Default)]
pub(super) struct CacheRead {
    /// Control words, for comparison with the next read. Empty if none of them would show changes.
    pub(super) control: Vec<u8>,
    /// The counters before and after. None: there is no cache, or it has no counters.
    pub(super) counts: Option<(JitCounts, JitCounts)>,
    /// The pieces that were read, in the order of the request. None: the control words have not changed, so nothing was read.
    pub(super) pieces: Option<Vec<Option<PieceBytes>>>,
}

impl CodeCache {
    /// For a VM whose compiled frames follow this rule.
    pub(super) fn new(rule: Rule, format: CodeFormat) -> Self {
        Self {
            rule,
            format,
            place: Cell::new(None),
            watched: Cell::new(None),
            number: Cell::new(None),
        }
    }

    /// Reads the number at `address` with every read of the cache. The number belongs to something else that must be read as often.
    pub(super) fn watch(&self, address: Option<u64>) {
        self.watched.set(address);
    }

    /// Returns the watched number, if it was read since the last call.
    pub(super) fn take_watched(&self) -> Option<u32> {
        self.number.take()
    }

    /// Reads pieces of the cache in one request. The request also confirms the location of the cache. `unless`: control words of an earlier
    /// read; if they are unchanged, nothing else is read. Empty: everything is read.
    ///
    /// # Errors
    ///
    /// The process's memory cannot be read.
    pub(super) fn read(
        &self,
        memory: &dyn BatchMemory,
        unless: &[u8],
        pieces: impl Fn(CacheMaps) -> Vec<Piece>,
    ) -> Result<CacheRead, TunnelError> {
        if self.rule.code_cache == 0 {
            return Ok(CacheRead::none());
        }
        for _ in 0..TRIES {
            let place = match self.place.get() {
                Some(place) => place,
                None => self.find(memory)?,
            };
            self.place.set(Some(place));
            let batch = Batch {
                control: self.control(place),
                unless: unless.to_vec(),
                pieces: self.maps(place).map_or_else(Vec::new, &pieces),
            };
            let answer = memory.read_batch(&batch);
            if answer.is_err() && self.watched.take().is_some() {
                // The watched number cannot be read any more; the cache may still exist.
                continue;
            }
            // The next read has to find the cache again.
            let answer = answer.inspect_err(|_| self.place.set(None))?;
            let (read, after) = match answer.read {
                Some(read) => (Some(read.pieces), read.after),
                None => (None, answer.before.clone()),
            };
            let counts = self.counts(place, &answer.before);
            match (counts, self.counts(place, &after)) {
                (Some(before), Some(now)) => {
                    return Ok(CacheRead {
                        control: now.map_or_else(Vec::new, |_| after),
                        counts: before.zip(now),
                        pieces: read,
                    });
                }
                // The cache is being created, or is another one.
                _ => self.place.set(None),
            }
        }
        Ok(CacheRead::none())
    }

    fn find(&self, memory: &dyn Memory) -> Result<Place, TunnelError> {
        let pointer = |at: u64, offset: u16| memory.read_word(at.wrapping_add(offset.into()), 8);
        let runtime = pointer(self.rule.special_methods, 0)?;
        let cache = match runtime {
            0 => 0,
            runtime => pointer(runtime, self.rule.code_cache)?,
        };
        Ok(Place { runtime, cache })
    }

    fn at(place: Place, offset: u16) -> Option<u64> {
        (place.cache != 0).then(|| place.cache.wrapping_add(offset.into()))
    }

    fn maps(&self, place: Place) -> Option<CacheMaps> {
        let methods = Self::at(place, self.rule.code_cache_map)?;
        let stubs = methods.wrapping_sub(MAP);
        Some(CacheMaps { methods, stubs })
    }

    /// Returns the pointers that lead to the cache, and its counters.
    fn control(&self, place: Place) -> Vec<MemoryRange> {
        let pointer = |address| MemoryRange {
            address,
            len: POINTER,
        };
        let watched = self.watched.get().map(|address| MemoryRange {
            address,
            len: NUMBER,
        });
        let mut control: Vec<_> = watched.into_iter().collect();
        control.push(pointer(self.rule.special_methods));
        if place.runtime != 0 {
            let offset = self.rule.code_cache.into();
            control.push(pointer(place.runtime.wrapping_add(offset)));
        }
        if self.rule.code_cache_counts != 0
            && let Some(at) = Self::at(place, self.rule.code_cache_counts)
        {
            control.extend(JitCounts::ranges(self.format, at));
        }
        control
    }

    /// Returns the counters of the cache at a place from control words, or Some(None) if it has no counters. None: the cache is not at this
    /// place.
    fn counts(&self, place: Place, control: &[u8]) -> Option<Option<JitCounts>> {
        let mut control = control;
        if self.watched.get().is_some() {
            let (number, behind) = control.split_first_chunk()?;
            self.number.set(Some(u32::from_le_bytes(*number)));
            control = behind;
        }
        let (runtime, mut rest) = control.split_first_chunk()?;
        let mut cache = 0;
        if place.runtime != 0 {
            let (pointer, behind) = rest.split_first_chunk()?;
            (cache, rest) = (u64::from_le_bytes(*pointer), behind);
        }
        let runtime = u64::from_le_bytes(*runtime);
        (place == Place { runtime, cache }).then(|| JitCounts::parse(self.format, rest))
    }
}

impl CacheRead {
    /// The result if there is no cache.
    fn none() -> Self {
        Self {
            pieces: Some(Vec::new()),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::compiled::testing::Words;

    fn rule() -> Rule {
        Rule {
            kind: varid_tunnel::abi::RULE_SIZED,
            special_methods: 0x100,
            code_cache: 0x18,
            code_cache_map: 0x40,
            code_cache_counts: 0x80,
            ..Rule::default()
        }
    }

    /// A runtime at 0x200 whose cache is at 0x300, and has compiled twice and collected once.
    fn words() -> Words {
        Words::of(&[
            (0x100, 0x200),
            (0x218, 0x300),
            (0x380, 0),
            (0x398, 2),
            (0x3a8, 1),
            (0x5000, 7),
        ])
    }

    fn read(cache: &CodeCache, memory: &Words, unless: &[u8]) -> CacheRead {
        let piece = |maps: CacheMaps| {
            assert_eq!((maps.methods, maps.stubs), (0x340, 0x310));
            let (address, len) = (0x5000, 8);
            vec![Piece::Bytes(MemoryRange { address, len })]
        };
        cache.read(memory, unless, piece).unwrap()
    }

    fn cache(rule: Rule) -> CodeCache {
        CodeCache::new(rule, CodeFormat::Android11)
    }

    #[test]
    fn what_is_read_comes_with_what_was_counted_before_and_after() {
        let (memory, cache) = (words(), cache(rule()));
        let found = read(&cache, &memory, &[]);
        let (before, after) = found.counts.unwrap();
        assert_eq!(before, after);
        let pieces = found.pieces.unwrap();
        assert_eq!(pieces[0].as_ref().unwrap().bytes(), 7u64.to_le_bytes());
        // Only the first reading looks for the cache.
        let requests = memory.requests();
        assert!(read(&cache, &memory, &found.control).pieces.is_none());
        assert_eq!(memory.requests(), requests + 1);
        memory.set(0x398, 3);
        let changed = read(&cache, &memory, &found.control);
        assert!(changed.pieces.is_some());
        assert_ne!(changed.counts.unwrap().0, before);
    }

    #[test]
    fn a_cache_that_is_another_one_by_now_is_found() {
        let (memory, cache) = (words(), cache(rule()));
        let found = read(&cache, &memory, &[]);
        for (at, word) in [(0x618, 0x300), (0x100, 0x600)] {
            memory.set(at, word);
        }
        let other = read(&cache, &memory, &found.control);
        assert_ne!(other.control, found.control);
        assert_eq!(other.pieces.unwrap().len(), 1);
    }

    #[test]
    fn a_cache_that_could_not_be_read_is_looked_for_again() {
        let (memory, cache) = (words(), cache(rule()));
        assert!(read(&cache, &memory, &[]).counts.is_some());
        // What led to it is not there any more; then there is another runtime, whose memory is elsewhere.
        let gone = Words::of(&[]);
        assert!(cache.read(&gone, &[], |_| Vec::new()).is_err());
        let other = Words::of(&[(0x100, 0x900), (0x918, 0)]);
        assert!(cache.read(&other, &[], |_| Vec::new()).is_ok());
    }

    #[test]
    fn a_number_that_is_watched_takes_no_request_of_its_own() {
        let (memory, cache) = (words(), cache(rule()));
        memory.set(0x8000, 5);
        cache.watch(Some(0x8000));
        let found = read(&cache, &memory, &[]);
        assert!(found.counts.is_some());
        assert_eq!(cache.take_watched(), Some(5));
        assert_eq!(cache.take_watched(), None);
        memory.set(0x8000, 6);
        let requests = memory.requests();
        assert!(read(&cache, &memory, &found.control).pieces.is_some());
        assert_eq!(cache.take_watched(), Some(6));
        assert_eq!(memory.requests(), requests + 1);
        // It is not there any more.
        cache.watch(Some(0x9000));
        assert!(read(&cache, &memory, &[]).counts.is_some());
        assert_eq!(cache.take_watched(), None);
    }

    #[test]
    fn without_a_cache_nothing_is_read() {
        let nothing = |rule, words: &[(u64, u64)]| {
            let (memory, cache) = (Words::of(words), cache(rule));
            let read = cache.read(&memory, &[], |_| panic!("there are no maps"));
            let read = read.unwrap();
            assert!(read.counts.is_none() && read.pieces.is_some_and(|read| read.is_empty()));
            memory.requests()
        };
        assert_eq!(nothing(Rule::default(), &[]), 0);
        nothing(rule(), &[(0x100, 0)]);
        nothing(rule(), &[(0x100, 0x200), (0x218, 0)]);
        let nowhere = cache(rule()).read(&Words::of(&[]), &[], |_| Vec::new());
        assert!(nowhere.is_err());
    }

    #[test]
    fn a_cache_that_counts_nothing_is_read_each_time() {
        let rule = Rule {
            code_cache_counts: 0,
            ..rule()
        };
        let (memory, cache) = (words(), cache(rule));
        let found = read(&cache, &memory, &[]);
        assert!(found.counts.is_none() && found.control.is_empty());
        assert!(read(&cache, &memory, &found.control).pieces.is_some());
    }
}
