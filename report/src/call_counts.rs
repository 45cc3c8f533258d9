//! How often was each method called? Where a session's VMs counted it.

use varid_model::{FrameAddress, MonotonicNs, Pid};
use varid_recording::{ContextNode, Contexts};

use crate::{
    naming::Resolver,
    stack_table_builder::StackTableBuilder,
    weights::{CallWeight, ProfileCounter, Weight, WeightTableBuilder},
};

/// The names of the counters that make a [`CallWeight`].
const COUNTERS: [&str; 3] = ["calls", "returns", "unwinds"];

/// The counts of a session. Each is of the method that its node's address meant at a time.
#[derive(Debug)]
pub(crate) struct CallCounts {
    /// Those that are not added yet, the latest first.
    pending: Vec<(ContextNode, CallWeight)>,
}

impl CallCounts {
    /// The counts of a session, or of one process of it.
    pub fn new(contexts: &Contexts, only: Option<Pid>) -> Self {
        let counters = COUNTERS.map(|name| contexts.counter(name));
        let weight =
            |id| counters.map(|counter| counter.map_or(0, |counter| contexts.value(id, counter)));
        let counts = contexts.node_ids().zip(contexts.nodes());
        let counts = counts.map(|(id, node)| (*node, Weight(weight(id))));
        let is_counted = |(node, weight): &(ContextNode, CallWeight)| {
            only.is_none_or(|only| only == node.pid) && !weight.is_zero()
        };
        let mut pending: Vec<_> = counts.filter(is_counted).collect();
        pending.reverse();
        Self { pending }
    }

    /// Adds the counts older than `time`, or all that are left if None. The resolver must be at that time.
    ///
    /// A VM counts for each method, and not for its callers: the stack has one frame.
    pub fn add_until(
        &mut self,
        time: Option<MonotonicNs>,
        resolver: &mut Resolver,
        (stacks, weights): (&mut StackTableBuilder, &mut WeightTableBuilder),
    ) {
        let is_due =
            |(node, _): &mut (ContextNode, CallWeight)| time.is_none_or(|time| node.time < time);
        while let Some((node, weight)) = self.pending.pop_if(is_due) {
            let method = FrameAddress::Instruction(node.address);
            let frames = resolver.user_frames(node.pid, method);
            let stack = stacks.intern(frames.last().copied());
            weights.add(None, stack, ProfileCounter::CALLS, weight);
        }
    }
}
