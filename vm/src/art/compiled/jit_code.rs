//! What has the JIT of a process made of a method?
//!
//! In each batch of samples the process is asked once: what its code cache has counted, and, if that has changed, whether the code that
//! the last samples executed is still there. While the counts stay, code that was read is taken for what is there: nothing has come into
//! its place. Only addresses of which nothing is known yet take further requests.

use super::code_cache::{CacheRead, CodeCache};
use super::jit_history::{JitCounts, JitHistory};
use super::jit_lookup::{Lookup, PIECES_OF_CHECK, check, is_same, starts_of_stubs};
use super::known_code::{CacheMapping, CodeAt, Seen};
use super::method::CompiledMethod;
use super::recent_code::RecentCode;
use crate::art::code_format::CodeFormat;
use crate::seam::CodeChange;
use nix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use varid_model::{Address, MonotonicNs};
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
    check: RefCell<Option<Result<Rc<Check>, Gone>>>,
    /// The cache's control words at the last check: the next one reads what is there only if they have changed. Empty: it reads it in any
    /// case.
    checked: RefCell<Vec<u8>>,
    /// Where native methods' stubs start, as of the last check or after it; None: it was not read, or could not be.
    stubs: RefCell<Option<BTreeSet<u64>>>,
}

/// The process's memory cannot be read: it has ended, most likely.
#[derive(Debug, Clone, Copy)]
struct Gone;

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

    /// See [`CodeCache::watch`].
    pub(super) fn watch(&self, address: Option<u64>) {
        self.cache.watch(address);
    }

    /// The next samples are of a later time: those that come are of code that is there from now on, if none is collected meanwhile. The
    /// number that is watched, if it was read since the last call.
    pub(super) fn begin_batch(&mut self, memory: &dyn BatchMemory) -> Option<u32> {
        let asked = self.check.take().is_some();
        self.recent.borrow_mut().end_batch();
        // Of a batch without compiled code the counts are still to be read.
        let observed = match asked {
            true => Ok(()),
            false => self.observe(memory),
        };
        if let Err(error) = observed {
            // What was seen of it stays.
            tracing::debug!(%error, "code of a JIT");
        }
        self.cache.take_watched()
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

    /// What the JIT does at present.
    pub(super) fn change(&self) -> CodeChange {
        let history = self.history.borrow();
        match (history.is_collecting(), history.is_changing()) {
            (true, _) => CodeChange::Replaced,
            (false, true) => CodeChange::Added,
            (false, false) => CodeChange::None,
        }
    }

    /// What the process has at an address of a code cache in a batch of samples, and until when, at most, it had what it had there before.
    /// `before`: what it had when it was last looked at.
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
            cache,
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
        // Code that is being added is counted first: that there is none is certain only if the counts have been the same for a while.
        let is_certain = found.method.is_some() || found.counts == check.before;
        Ok(Found {
            counts: found.counts.filter(|_| is_certain),
            ..found
        })
    }

    /// What the JIT has compiled the code at an address from, as it is read now. `settled`: what the cache had counted for a while.
    fn look_up(
        &self,
        memory: &dyn BatchMemory,
        address: Address,
        before: Option<&Rc<CompiledMethod>>,
        settled: Option<JitCounts>,
    ) -> Result<Found, TunnelError> {
        /// How often the map is read in which an address is not found: the JIT may be changing it.
        const TRIES: usize = 3;
        // Before it is read: it may be replaced right behind that.
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
            // After the code was read: what is collected meanwhile is counted.
            found.since = self.note(lookup.counts());
            found.counts = lookup.unchanged_counts();
            let is_settled = found.counts.is_some() && found.counts == settled;
            if found.method.is_some() || is_settled {
                break;
            }
        }
        Ok(found)
    }

    /// Asks the process, the first time in a batch of samples, what has changed since it was last asked.
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

/// The time now, of the clock of every sample.
fn now() -> MonotonicNs {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    let now = now.unwrap_or_default().as_nanos();
    MonotonicNs::new(u64::try_from(now).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
