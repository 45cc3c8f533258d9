//! How often was each method called? Where a session's VMs counted it.

use varid_model::{FrameAddress, MonotonicNs};
use varid_recording::CallCount;

use crate::{
    naming::Resolver,
    stack_table_builder::StackTableBuilder,
    weights::{ProfileCounter, Weight, WeightTableBuilder},
};

/// The counts of a session. Each is of the method that its address meant at a time.
#[derive(Debug)]
pub(crate) struct CallCounts {
    /// Those that are not added yet, the latest first.
    pending: Vec<CallCount>,
}

impl CallCounts {
    pub fn new(mut counts: Vec<CallCount>) -> Self {
        counts.sort_by_key(|count| std::cmp::Reverse(count.time));
        Self { pending: counts }
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
        let is_due = |count: &mut CallCount| time.is_none_or(|time| count.time < time);
        while let Some(count) = self.pending.pop_if(is_due) {
            let method = FrameAddress::Instruction(count.address);
            let frames = resolver.user_frames(count.pid, method);
            let stack = stacks.intern(frames.last().copied());
            let weight = Weight([count.invokes, count.returns, count.unwinds]);
            weights.add(None, stack, ProfileCounter::CALLS, weight);
        }
    }
}
