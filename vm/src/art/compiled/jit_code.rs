//! Finds code of a process's JIT, at the time of a sample.
//!
//! The process is checked once in each batch of samples: the counters of its code cache are read, and if they have changed, also whether
//! the code that the previous samples executed is still there. While the counters are unchanged, code that was read is assumed to be there:
//! nothing has replaced it. Only addresses of which nothing is known yet take further requests.

use super::code_cache::{CacheRead, CodeCache};
use super::jit_history::{JitCounts, JitHistory};
use super::jit_lookup::{Lookup, PIECES_OF_CHECK, check, is_same, starts_of_stubs};
use super::known_code::{CacheMapping, CodeAt, Seen};
use super::method::CompiledMethod;
use super::recent_code::RecentCode;
use crate::art::code_format::CodeFormat;
use crate::seam::CodeChange;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use varid_model::{Address, MonotonicNs};
use varid_process::clock::now;
use varid_process::reader::{BatchMemory, Piece};
use varid_tunnel::TunnelError;
use varid_tunnel::abi::Rule;

/// The JIT of a process.
#[derive(Debug)]
pub(super) struct JitCode {
    cache: CodeCache,
    history: RefCell<JitHistory>,
    recent: RefCell<RecentCode>,
    /// The check of this batch of samples.
    check: RefCell<Option<Result<Rc<Check>, Gone>>>,
    /// The cache's control words at the last check. The next check reads the code only if they have changed. Empty: it reads the code in
    /// any case.
    checked: RefCell<Vec<u8>>,
    /// The starts of native methods' stubs, at the last check or later. None: they were not read, or could not be.
    stubs: RefCell<Option<BTreeSet<u64>>>,
}

/// The process's memory cannot be read. Most likely the process has ended.
#[derive(Debug, Clone, Copy)]
struct Gone;

/// The result of the first check in a batch of samples.
#[derive(Debug)]
struct Check {
    /// The time of the check.
    time: MonotonicNs,
    /// The cache's counters at the check, and before it. None: it has no counters.
    counts: Option<JitCounts>,
    before: Option<JitCounts>,
    /// The code has been in its place at least since this time.
    since: MonotonicNs,
    /// The starts of code that was read again and was unchanged.
    same: BTreeSet<u64>,
    /// Nothing was compiled or collected during the check.
    is_certain: bool,
}

/// The code at an address.
struct Found {
    method: Option<Rc<CompiledMethod>>,
    /// A time at which it was there, before it was read.
    last: MonotonicNs,
    /// It has been there at least since this time.
    since: MonotonicNs,
    /// It stays there while the cache has these counters.
    counts: Option<JitCounts>,
}

impl JitCode {
    /// For a VM whose compiled frames follow this rule.
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

    /// See [`CodeCache::watch`].
    pub(super) fn watch(&self, address: Option<u64>) {
        self.cache.watch(address);
    }

    /// Begins a batch. Its samples are of code that is there from now on, if none is collected meanwhile. Returns the watched number, if it
    /// was read since the last call.
    pub(super) fn begin_batch(&mut self, memory: &dyn BatchMemory) -> Option<u32> {
        let asked = self.check.take().is_some();
        self.recent.borrow_mut().end_batch();
        // After a batch without compiled code, the counters have not been read yet.
        let observed = match asked {
            true => Ok(()),
            false => self.observe(memory),
        };
        if let Err(error) = observed {
            // What was observed before is kept.
            tracing::debug!(%error, "code of a JIT");
        }
        self.cache.take_watched()
    }

    fn observe(&self, memory: &dyn BatchMemory) -> Result<(), TunnelError> {
        let read = self.cache.read(memory, &[], |_| Vec::new())?;
        self.note(read.counts.map(|(_, counts)| counts));
        Ok(())
    }

    /// Records the code cache's counters. Returns the time since when, at least, code that was read before has been in its place.
    fn note(&self, counts: Option<JitCounts>) -> MonotonicNs {
        let Some(counts) = counts else {
            // A VM without counters is assumed not to collect code.
            return MonotonicNs::ZERO;
        };
        let mut history = self.history.borrow_mut();
        history.observe(now(), counts);
        history.unchanged_since()
    }

    /// What the JIT is doing.
    pub(super) fn change(&self) -> CodeChange {
        let history = self.history.borrow();
        match (history.is_collecting(), history.is_changing()) {
            (true, _) => CodeChange::Replaced,
            (false, true) => CodeChange::Added,
            (false, false) => CodeChange::None,
        }
    }

    /// Returns the code at an address of a code cache in a batch of samples, and an upper bound of the time at which the previous code went
    /// away. `before`: the result of the previous look at the address.
    pub(super) fn code_at(
        &self,
        memory: &dyn BatchMemory,
        (address, cache): (Address, CacheMapping),
        batch: u64,
        before: Option<CodeAt>,
    ) -> (CodeAt, Option<MonotonicNs>) {
        let (before, seen) = before.map_or((None, None), |code| (code.method, code.seen));
        let place = (address, cache);
        let Ok(found) = self.find(memory, place, before.as_ref(), seen) else {
            // A process that has ended cannot be asked. If it was collecting code, this code may have been replaced.
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
                cache,
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
        // One collection makes room for other code, a second one for the same code again.
        let stayed = |seen: &Seen| {
            is_same && (found.since <= seen.last || collections.is_some_and(|number| number <= 1))
        };
        let stayed = seen.filter(stayed);
        // If there had been two pieces of code in turn, they would have been collected at different times.
        let until = seen.filter(|_| found.method.is_none() && collections == Some(1));
        if let Some(method) = &found.method {
            self.recent.borrow_mut().add(method);
        }
        let new = Seen {
            batch,
            cache,
            last: found.last,
            since: stayed.map_or(found.since, |seen| seen.since.min(found.since)),
            // The batch's samples were taken before now.
            until: MonotonicNs::MAX,
            counts: found.counts,
        };
        let until = until.map(|_| found.last);
        (CodeAt::new(address, found.method, Some(new)), until)
    }

    fn find(
        &self,
        memory: &dyn BatchMemory,
        (address, cache): (Address, CacheMapping),
        before: Option<&Rc<CompiledMethod>>,
        seen: Option<Seen>,
    ) -> Result<Found, Gone> {
        let check = self.check_once(memory)?;
        if let Some(seen) = seen.filter(|seen| seen.cache == cache) {
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
        let found = self.look_up(memory, address, before, check.before);
        let found = found.map_err(gone)?;
        // Code that is being added is counted first. So an address is certain to have no code only if the counters have been unchanged for
        // a while.
        let is_certain = found.method.is_some() || found.counts == check.before;
        Ok(Found {
            counts: found.counts.filter(|_| is_certain),
            ..found
        })
    }

    /// Reads the code at an address now. `settled`: counters that have been unchanged for a while.
    fn look_up(
        &self,
        memory: &dyn BatchMemory,
        address: Address,
        before: Option<&Rc<CompiledMethod>>,
        settled: Option<JitCounts>,
    ) -> Result<Found, TunnelError> {
        /// How often the map is read if it does not contain the address: the JIT may be changing it.
        const TRIES: usize = 3;
        // This is taken before the read: the code may be replaced right after it.
        let mut found = Found {
            method: None,
            last: now(),
            since: MonotonicNs::ZERO,
            counts: None,
        };
        let mut stubs = self.stubs.borrow_mut();
        for _ in 0..TRIES {
            let mut lookup = Lookup::new(&self.cache, memory);
            found.method = lookup.code_at(address.get(), before, &mut stubs)?;
            // This is taken after the read: collections during the read are counted.
            found.since = self.note(lookup.counts());
            found.counts = lookup.unchanged_counts();
            let is_settled = found.counts.is_some() && found.counts == settled;
            if found.method.is_some() || is_settled {
                break;
            }
        }
        Ok(found)
    }

    /// Checks what has changed in the process, at the first call in a batch of samples.
    fn check_once(&self, memory: &dyn BatchMemory) -> Result<Rc<Check>, Gone> {
        if let Some(check) = &*self.check.borrow() {
            return check.clone();
        }
        let check = self.check(memory).map(Rc::new).map_err(gone);
        *self.check.borrow_mut() = Some(check.clone());
        check
    }

    fn check(&self, memory: &dyn BatchMemory) -> Result<Check, TunnelError> {
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
                *known_stubs = entries.as_ref().map(starts_of_stubs);
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
        Ok(Check {
            time,
            counts,
            before,
            since: self.note(counts),
            same,
            is_certain,
        })
    }
}

fn gone(error: TunnelError) -> Gone {
    tracing::debug!(%error, "code of a JIT");
    Gone
}

#[cfg(test)]
mod tests;
