//! How often was each method called? Where a session's VMs counted it.

use std::collections::HashMap;

use varid_model::{FrameAddress, MonotonicNs};
use varid_recording::CallCount;

use crate::{
    place::{Place, PlaceId, SymbolId},
    resolve::Resolver,
};

/// What happened to calls of a method. Exact: every event was counted, none was sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Calls {
    /// Calls.
    pub invokes: u64,
    /// Returns.
    pub returns: u64,
    /// Left by an exception.
    pub unwinds: u64,
}

impl Calls {
    fn add(&mut self, other: Self) {
        self.invokes = self.invokes.saturating_add(other.invokes);
        self.returns = self.returns.saturating_add(other.returns);
        self.unwinds = self.unwinds.saturating_add(other.unwinds);
    }
}

/// The counts of a session, which find their places as its records go by.
#[derive(Debug, Default)]
pub struct Counting {
    /// Those without a place yet, the latest first.
    waiting: Vec<CallCount>,
    found: HashMap<PlaceId, Calls>,
}

impl Counting {
    /// Of these counts.
    pub fn new(mut counts: Vec<CallCount>) -> Self {
        counts.sort_by_key(|count| std::cmp::Reverse(count.time));
        Self {
            waiting: counts,
            found: HashMap::new(),
        }
    }

    /// What was before `time` has gone by; None: everything.
    pub fn until(&mut self, time: Option<MonotonicNs>, resolver: &mut Resolver) {
        let is_due = |count: &mut CallCount| time.is_none_or(|time| count.time < time);
        while let Some(count) = self.waiting.pop_if(is_due) {
            let method = FrameAddress::Instruction(count.address);
            let places = resolver.user(count.pid.get(), method);
            if let Some(place) = places.last() {
                self.found.entry(*place).or_default().add(Calls {
                    invokes: count.invokes,
                    returns: count.returns,
                    unwinds: count.unwinds,
                });
            }
        }
    }

    /// The counts by method.
    pub fn by_symbol(self, places: &[Place]) -> HashMap<SymbolId, Calls> {
        let mut found: HashMap<SymbolId, Calls> = HashMap::new();
        for (PlaceId(place), calls) in self.found {
            let place = usize::try_from(place).ok().and_then(|at| places.get(at));
            if let Some(place) = place {
                found.entry(place.symbol).or_default().add(calls);
            }
        }
        found
    }
}
