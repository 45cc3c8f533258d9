//! What has the JIT of a process made of a method?
//!
//! In each batch of samples the process is asked once: what its code cache has counted, and, if that has changed, whether the code that
//! the last samples executed is still there. While the counts stay, code that was read is taken for what is there: nothing has come into
//! its place. Only addresses of which nothing is known yet take further requests.

use super::code_cache::{CacheRead, CodeCache};
use super::jit_history::{JitCounts, JitHistory};
use super::jit_lookup::{Lookup, PIECES_OF_CHECK, check, is_same, starts_of_stubs};
use super::known_code::{CodeAt, Seen};
use super::method::CompiledMethod;
use super::recent_code::RecentCode;
use crate::art::code_format::CodeFormat;
use nix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use varid_model::{Address, MonotonicNs};
use varid_process::MappingId;
use varid_process::reader::{BatchMemory, Piece};
use varid_tunnel::TunnelError;
use varid_tunnel::abi::Rule;

/// The JIT of a process.
#[derive(Debug)]
pub(super) struct JitCode {
    cache: CodeCache,
    history: RefCell<JitHistory>,
    recent: RefCell<RecentCode>,
    /// That of this batch of samples.
    check: RefCell<Option<Rc<Check>>>,
    /// The cache's control words at the last check: the next one reads what is there only if they have changed. Empty: it reads it in any
    /// case.
    checked: RefCell<Vec<u8>>,
    /// Where native methods' stubs start, as of the last check or after it.
    stubs: RefCell<Option<BTreeSet<u64>>>,
}

/// What was found when the process was first asked in a batch of samples.
#[derive(Debug)]
struct Check {
    /// When it was asked.
    time: MonotonicNs,
    /// What the cache had counted then, and before that; None: it counts nothing.
    counts: Option<JitCounts>,
    before: Option<JitCounts>,
    /// Since when at least code has been where it was at that time.
    since: MonotonicNs,
    /// Where code starts that was read again, and was the same.
    same: BTreeSet<u64>,
    /// Nothing was compiled or collected meanwhile.
    is_certain: bool,
}

/// What is at an address.
struct Found {
    method: Option<Rc<CompiledMethod>>,
    /// A time when it was there, before it was read.
    last: MonotonicNs,
    /// Since when at least it has been there.
    since: MonotonicNs,
    /// While the cache has counted this, it stays there.
    counts: Option<JitCounts>,
}

impl JitCode {
    /// That of a VM whose compiled frames follow this rule.
    pub(super) fn new(rule: Rule, format: CodeFormat) -> Self {
        Self {
            cache: CodeCache::new(rule, format),
            history: RefCell::default(),
            recent: RefCell::default(),
            check: RefCell::default(),
            checked: RefCell::default(),
            stubs: RefCell::default(),
        }
    }

    /// The next samples are of a later time: those that come are of code that is there from now on, if none is collected meanwhile.
    pub(super) fn begin_batch(&mut self, memory: &dyn BatchMemory) {
        let asked = self.check.take().is_some();
        self.recent.borrow_mut().end_batch();
        // Of a batch without compiled code the counts are still to be read.
        let observed = match asked {
            true => Ok(()),
            false => self.observe(memory),
        };
        if let Err(error) = observed {
            // It has ended, most likely; what was seen of it stays.
            tracing::debug!(%error, "code of a JIT");
        }
    }

    fn observe(&self, memory: &dyn BatchMemory) -> Result<(), TunnelError> {
        let read = self.cache.read(memory, &[], |_| Vec::new())?;
        self.note(read.counts.map(|(_, counts)| counts));
        Ok(())
    }

    /// Notes what the code cache has counted up to now. Since when at least code has been where it was read before.
    fn note(&self, counts: Option<JitCounts>) -> MonotonicNs {
        let Some(counts) = counts else {
            // A VM that counts nothing collects nothing, as far as is known.
            return MonotonicNs::ZERO;
        };
        let mut history = self.history.borrow_mut();
        history.observe(now(), counts);
        history.unchanged_since()
    }

    /// Whether code is compiled or collected at present: what is to be known of it has to be read soon.
    pub(super) fn is_changing(&self) -> bool {
        self.history.borrow().is_changing()
    }

    /// What the process has at an address of a mapping in a batch of samples, and until when, at most, it had what it had there before.
    /// `before`: what it had when it was last looked at.
    pub(super) fn code_at(
        &self,
        memory: &dyn BatchMemory,
        (address, mapping): (Address, MappingId),
        batch: u64,
        before: Option<CodeAt>,
    ) -> (CodeAt, Option<MonotonicNs>) {
        let (before, seen) = before.map_or((None, None), |code| (code.method, code.seen));
        let place = (address, mapping);
        let Ok(found) = self.find(memory, place, before.as_ref(), seen) else {
            // A process that has ended tells nothing of what it had. While it collected code, this may have been replaced.
            let is_collecting = self.history.borrow().is_collecting();
            let seen = seen.map(|seen| Seen {
                batch,
                until: match is_collecting {
                    true => seen.last,
                    false => seen.until,
                },
                ..seen
            });
            let now = now();
            let seen = seen.unwrap_or(Seen {
                batch,
                mapping,
                last: now,
                since: now,
                until: MonotonicNs::MAX,
                counts: None,
            });
            return (CodeAt::new(address, before, Some(seen)), None);
        };
        let history = self.history.borrow();
        let collections = seen.and_then(|seen| history.collections_since(seen.last));
        let is_same = match (&before, &found.method) {
            (Some(before), Some(method)) => Rc::ptr_eq(before, method),
            _ => false,
        };
        // One collection makes room for other code, a second one for the same again.
        let stayed = |seen: &Seen| {
            is_same && (found.since <= seen.last || collections.is_some_and(|number| number <= 1))
        };
        let stayed = seen.filter(stayed);
        // Two pieces of code that are gone would have been collected at different times.
        let until = seen.filter(|_| found.method.is_none() && collections == Some(1));
        if let Some(method) = &found.method {
            self.recent.borrow_mut().add(method);
        }
        let new = Seen {
            batch,
            mapping,
            last: found.last,
            since: stayed.map_or(found.since, |seen| seen.since.min(found.since)),
            // The batch's samples were taken before.
            until: MonotonicNs::MAX,
            counts: found.counts,
        };
        let until = until.map(|_| found.last);
        (CodeAt::new(address, found.method, Some(new)), until)
    }

    fn find(
        &self,
        memory: &dyn BatchMemory,
        (address, mapping): (Address, MappingId),
        before: Option<&Rc<CompiledMethod>>,
        seen: Option<Seen>,
    ) -> Result<Found, TunnelError> {
        let check = self.check(memory)?;
        if let Some(seen) = seen.filter(|seen| seen.mapping == mapping) {
            let stays = check.counts.is_some() && seen.counts == check.counts;
            let start = before.map(|before| before.code.start);
            let was_checked = start.is_some_and(|start| check.same.contains(&start));
            if stays || was_checked {
                return Ok(Found {
                    method: before.cloned(),
                    last: check.time,
                    since: check.since,
                    counts: check.counts.filter(|_| stays || check.is_certain),
                });
            }
        }
        // Before it is read: it may be replaced right behind that.
        let last = now();
        let (method, since, counts) = self.look_up(memory, address, before)?;
        // Code that is being added is counted first: that there is none is certain only if the counts have been the same for a while.
        let is_certain = method.is_some() || counts == check.before;
        Ok(Found {
            method,
            last,
            since,
            counts: counts.filter(|_| is_certain),
        })
    }

    /// What the JIT has compiled the code at an address from, since when at least it has been there, and, if nothing changed while it was
    /// read, what the cache had counted.
    fn look_up(
        &self,
        memory: &dyn BatchMemory,
        address: Address,
        before: Option<&Rc<CompiledMethod>>,
    ) -> Result<(Option<Rc<CompiledMethod>>, MonotonicNs, Option<JitCounts>), TunnelError> {
        /// How often the map is read in which an address is not found: the JIT may be changing it.
        const TRIES: usize = 3;
        let mut stubs = self.stubs.borrow_mut();
        let mut found = (None, MonotonicNs::ZERO, None);
        for _ in 0..TRIES {
            let mut lookup = Lookup::new(&self.cache, memory);
            let method = lookup.code_at(address.get(), before, &mut stubs)?;
            // After the code was read: what is collected meanwhile is counted.
            let since = self.note(lookup.counts());
            found = (method, since, lookup.unchanged_counts());
            if found.0.is_some() {
                break;
            }
        }
        Ok(found)
    }

    /// Asks the process what has changed since it was last asked, the first time in a batch of samples.
    fn check(&self, memory: &dyn BatchMemory) -> Result<Rc<Check>, TunnelError> {
        if let Some(check) = &*self.check.borrow() {
            return Ok(check.clone());
        }
        let time = now();
        let expected = self.recent.borrow().expected();
        let mut known_stubs = self.stubs.borrow_mut();
        let has_stubs = known_stubs.is_some();
        let CacheRead {
            control,
            counts,
            pieces,
        } = self.cache.read(memory, &self.checked.borrow(), |maps| {
            let stubs = has_stubs.then_some(Piece::Entries { map: maps.stubs });
            let codes = expected.iter().flat_map(|code| check(code, maps));
            stubs.into_iter().chain(codes).collect()
        })?;
        let mut same = BTreeSet::new();
        if let Some(pieces) = &pieces {
            let (entries, pieces) = pieces.split_at(usize::from(has_stubs).min(pieces.len()));
            if let Some(entries) = entries.first() {
                *known_stubs = Some(starts_of_stubs(entries.as_ref()));
            }
            for (code, pieces) in expected.iter().zip(pieces.chunks(PIECES_OF_CHECK)) {
                if is_same(code, self.cache.format, pieces, known_stubs.as_ref()) {
                    same.insert(code.code.start);
                }
            }
        }
        let is_certain =
            counts.is_some_and(|(before, after)| before == after && !after.is_collecting());
        let counts = counts.map(|(_, counts)| counts);
        *self.checked.borrow_mut() = match is_certain {
            true => control,
            false => Vec::new(),
        };
        let before = self.history.borrow().counts();
        let check = Rc::new(Check {
            time,
            counts,
            before,
            since: self.note(counts),
            same,
            is_certain,
        });
        *self.check.borrow_mut() = Some(check.clone());
        Ok(check)
    }
}

/// The time now, of the clock of every sample.
fn now() -> MonotonicNs {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    let now = now.unwrap_or_default().as_nanos();
    MonotonicNs::new(u64::try_from(now).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::compiled::method::Owner;
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use varid_process::reader::{Batch, BatchAnswer};
    use varid_tunnel::Memory;

    /// Code of ART's compiler, with headers and what the compiler noted down: tests/fixtures/art11/make.sh.
    const OAT: &[u8] = include_bytes!("../../../tests/fixtures/art11/code.oat");
    const BASE: u64 = 0x10_0000;
    const CODE: u64 = BASE + 0x1180;
    const METHOD: u64 = 0x5000;

    /// A process with code, the JIT's map of it, and what the code cache counts.
    struct Process {
        words: BTreeMap<u64, u64>,
        counts: Cell<[u64; 2]>,
        /// Each reading of the counts finds another one.
        compiling: Cell<bool>,
        /// Whose code it is.
        method: Cell<u64>,
        /// The map has no node at the first reads.
        changing: Cell<u32>,
        /// When the map was first read.
        read: Cell<Option<MonotonicNs>>,
        /// The process ends before it tells its counts.
        ends: bool,
        reads_of_stubs: Cell<u32>,
        /// Requests that a session would have made, and how many of them have read code.
        requests: Cell<u32>,
        reads_of_code: Cell<u32>,
    }

    impl Process {
        fn new() -> Self {
            Self {
                words: BTreeMap::from([(0x100, 0x200), (0x218, 0x300)]),
                counts: Cell::new([1, 1]),
                compiling: Cell::new(false),
                method: Cell::new(METHOD),
                changing: Cell::new(0),
                read: Cell::new(None),
                ends: false,
                reads_of_stubs: Cell::new(0),
                requests: Cell::new(0),
                reads_of_code: Cell::new(0),
            }
        }
    }

    impl BatchMemory for Process {
        fn read_batch(&self, batch: &Batch) -> Result<BatchAnswer, TunnelError> {
            self.requests.set(self.requests.get() + 1);
            let reads = self.reads_of_code.get();
            let answer = batch.carry_out(self);
            self.reads_of_code
                .set(self.reads_of_code.get().min(reads + 1));
            answer
        }
    }

    impl Memory for Process {
        fn read(&self, address: u64, out: &mut [u8]) -> Result<(), TunnelError> {
            let [compiled, collected] = self.counts.get();
            if address == 0x350 && self.read.get().is_none() {
                self.read.set(Some(now()));
            }
            if address == 0x1000 {
                let node = [0, 0, 0, 0, CODE, self.method.get(), 0].map(u64::to_le_bytes);
                out.copy_from_slice(node.as_flattened());
                return Ok(());
            }
            if address == 0x398 && self.compiling.get() {
                self.counts.set([compiled + 1, collected]);
            }
            let word = match address {
                0x320 => {
                    self.reads_of_stubs.set(self.reads_of_stubs.get() + 1);
                    0
                }
                0x398 if self.ends => {
                    let reason = "it has ended".to_owned();
                    let len = out.len();
                    return Err(TunnelError::Read {
                        address,
                        len,
                        reason,
                    });
                }
                0x350 if self.changing.get() > 0 => {
                    self.changing.set(self.changing.get() - 1);
                    0
                }
                0x350 => 0x1000,
                0x380 => 0,
                0x398 => compiled,
                0x3a8 => collected,
                BASE.. => {
                    self.reads_of_code.set(self.reads_of_code.get() + 1);
                    let start = (address - BASE) as usize;
                    out.fill(0);
                    let there = OAT.get(start..).unwrap_or_default();
                    let length = there.len().min(out.len());
                    out[..length].copy_from_slice(&there[..length]);
                    return Ok(());
                }
                _ => {
                    for (at, bytes) in (address..).step_by(8).zip(out.chunks_mut(8)) {
                        let word = self.words.get(&at).copied().unwrap_or_default();
                        let word = word.to_le_bytes();
                        bytes.copy_from_slice(&word[..bytes.len()]);
                    }
                    return Ok(());
                }
            };
            out.copy_from_slice(&u64::to_le_bytes(word)[..out.len()]);
            Ok(())
        }
    }

    fn jit() -> JitCode {
        JitCode::new(
            Rule {
                kind: varid_tunnel::abi::RULE_SIZED,
                special_methods: 0x100,
                code_cache: 0x18,
                code_cache_map: 0x40,
                code_cache_counts: 0x80,
                ..Rule::default()
            },
            CodeFormat::Android11,
        )
    }

    type Method = Option<Rc<CompiledMethod>>;

    fn method_at(process: &Process, jit: &JitCode, address: u64, before: &Method) -> Method {
        let found = jit.look_up(process, Address::new(address), before.as_ref());
        found.unwrap().0
    }

    #[test]
    fn code_that_is_there_twice_is_copied_once() {
        let (process, jit) = (Process::new(), jit());
        let first = method_at(&process, &jit, CODE + 3, &None);
        let code = first.as_ref().unwrap();
        assert_eq!(code.code, CODE..CODE + 0xf7);
        assert_eq!(code.owner, Owner::Pointer(METHOD));
        let second = method_at(&process, &jit, CODE, &first).unwrap();
        assert!(Rc::ptr_eq(code, &second));
        assert!(method_at(&process, &jit, CODE + 0xf7, &first).is_none());
    }

    #[test]
    fn a_map_that_is_being_changed_is_read_once_more() {
        let (process, jit) = (Process::new(), jit());
        process.changing.set(2);
        assert!(method_at(&process, &jit, CODE, &None).is_some());
    }

    #[test]
    fn stubs_are_read_when_code_was_compiled() {
        let (process, mut jit) = (Process::new(), jit());
        for address in [1, 2, 3] {
            code_of(&process, &jit, 1, address, None);
        }
        assert_eq!(process.reads_of_stubs.get(), 1);
        jit.begin_batch(&process);
        code_of(&process, &jit, 2, 4, None);
        assert_eq!(process.reads_of_stubs.get(), 1);
        process.counts.set([2, 1]);
        jit.begin_batch(&process);
        code_of(&process, &jit, 3, 4, None);
        assert_eq!(process.reads_of_stubs.get(), 2);
    }

    /// Batches of samples, each with samples of the same code.
    fn batches(process: &Process, jit: &mut JitCode, before: &CodeAt, count: u64) -> CodeAt {
        (0..count).fold(before.clone(), |before, batch| {
            jit.begin_batch(process);
            (0..100).fold(before, |before, _| {
                code_of(process, jit, batch + 2, CODE, Some(&before))
            })
        })
    }

    #[test]
    fn a_batch_of_samples_of_known_code_takes_one_request() {
        let (process, mut jit) = (Process::new(), jit());
        let first = code_of(&process, &jit, 1, CODE, None);
        let requests = process.requests.get();
        // The check, one for the code, and one for what the compiler noted down of it.
        assert_eq!(requests, 3);
        let reads = process.reads_of_code.get();
        let same = batches(&process, &mut jit, &first, 50);
        assert_eq!(process.requests.get(), requests + 50);
        assert_eq!(process.reads_of_code.get(), reads, "nothing has changed");
        let (first, same) = (first.method.unwrap(), same.method.unwrap());
        assert!(Rc::ptr_eq(&first, &same));
    }

    #[test]
    fn known_code_is_read_again_with_the_counts_that_have_changed() {
        let (process, mut jit) = (Process::new(), jit());
        let mut code = code_of(&process, &jit, 1, CODE, None);
        batches(&process, &mut jit, &code, 1);
        let (requests, reads) = (process.requests.get(), process.reads_of_code.get());
        for compiled in 2..12 {
            process.counts.set([compiled, 1]);
            code = batches(&process, &mut jit, &code, 1);
        }
        assert_eq!(process.requests.get(), requests + 10);
        assert_eq!(process.reads_of_code.get(), reads + 10);
        // Code of another method is in its place.
        process.counts.set([13, 2]);
        process.method.set(METHOD + 8);
        code = batches(&process, &mut jit, &code, 1);
        assert_eq!(code.method.unwrap().owner, Owner::Pointer(METHOD + 8));
    }

    #[test]
    fn a_batch_without_samples_of_code_takes_one_request() {
        let (process, mut jit) = (Process::new(), jit());
        jit.begin_batch(&process);
        let requests = process.requests.get();
        for _ in 0..10 {
            jit.begin_batch(&process);
        }
        assert_eq!(process.requests.get(), requests + 10);
    }

    #[test]
    fn an_address_without_code_is_looked_up_again_when_the_counts_have_stayed() {
        let (process, mut jit) = (Process::new(), jit());
        jit.begin_batch(&process);
        process.counts.set([2, 1]);
        let address = CODE + 0xf7;
        let mut code = code_of(&process, &jit, 1, address, None);
        let mut requests = Vec::new();
        for batch in 2..5 {
            jit.begin_batch(&process);
            let before = process.requests.get();
            code = code_of(&process, &jit, batch, address, Some(&code));
            requests.push(process.requests.get() - before);
        }
        assert!(code.method.is_none());
        assert_eq!(requests, [4, 1, 1]);
    }

    #[test]
    fn code_that_changes_while_it_is_read_is_read_in_the_next_batch() {
        let (process, mut jit) = (Process::new(), jit());
        let first = code_of(&process, &jit, 1, CODE, None);
        // Each reading of the counts is another one.
        process.counts.set([2, 1]);
        process.compiling.set(true);
        jit.begin_batch(&process);
        let code = code_of(&process, &jit, 2, CODE, Some(&first));
        assert_eq!(code.seen.unwrap().counts, None);
        process.compiling.set(false);
        let reads = process.reads_of_code.get();
        jit.begin_batch(&process);
        let code = code_of(&process, &jit, 3, CODE, Some(&code));
        assert_eq!(process.reads_of_code.get(), reads + 1);
        assert!(code.seen.unwrap().counts.is_some());
    }

    #[test]
    fn code_of_another_mapping_is_read_again() {
        let (process, jit) = (Process::new(), jit());
        let first = code_of(&process, &jit, 1, CODE, None);
        let reads = process.reads_of_code.get();
        let mapping = MappingId { slot: 0, serial: 9 };
        let place = (Address::new(CODE), mapping);
        jit.code_at(&process, place, 2, Some(first));
        assert!(process.reads_of_code.get() > reads);
    }

    #[test]
    fn code_is_there_since_code_was_last_replaced() {
        let (process, mut jit) = (Process::new(), jit());
        jit.begin_batch(&process);
        let observed = now();
        let since = |jit: &JitCode| jit.look_up(&process, Address::new(CODE), None).unwrap().1;
        assert!(since(&jit) <= observed);
        process.counts.set([2, 1]);
        assert!(since(&jit) <= observed, "nothing was collected");
        process.counts.set([3, 2]);
        assert!(since(&jit) > observed);
        let history = jit.history.borrow();
        assert_eq!(history.collections_since(observed), Some(1));
        assert!(history.is_collecting());
    }

    /// What is there in a batch, after what was there before.
    fn code_at(process: &Process, jit: &JitCode, before: Option<&CodeAt>) -> CodeAt {
        code_of(process, jit, 1, CODE, before)
    }

    fn code_of(
        process: &Process,
        jit: &JitCode,
        batch: u64,
        address: u64,
        before: Option<&CodeAt>,
    ) -> CodeAt {
        let place = (Address::new(address), MappingId::default());
        jit.code_at(process, place, batch, before.cloned()).0
    }

    #[test]
    fn code_was_last_there_before_it_was_read() {
        let (process, jit) = (Process::new(), jit());
        let seen = code_at(&process, &jit, None).seen.unwrap();
        assert!(seen.last <= process.read.get().unwrap());
    }

    #[test]
    fn the_same_code_may_have_been_away_between_two_collections() {
        let (process, mut jit) = (Process::new(), jit());
        jit.begin_batch(&process);
        let first = code_at(&process, &jit, None);
        let mut since = |counts| {
            process.counts.set(counts);
            jit.begin_batch(&process);
            let second = code_at(&process, &jit, Some(&first));
            assert!(Rc::ptr_eq(
                first.method.as_ref().unwrap(),
                second.method.as_ref().unwrap()
            ));
            second.seen.unwrap().since
        };
        let seen = first.seen.unwrap();
        assert_eq!(since([3, 2]), seen.since);
        assert!(since([4, 3]) > seen.last);
    }

    #[test]
    fn a_process_that_ends_before_it_tells_its_counts_has_no_new_code() {
        let (mut process, jit) = (Process::new(), jit());
        process.ends = true;
        assert!(code_at(&process, &jit, None).method.is_none());
    }
}
