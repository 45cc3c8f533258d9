//! What a session's calling contexts weigh: their nodes become stacks, their counters columns of weights.

use varid_model::{FrameAddress, MonotonicNs, Pid};
use varid_recording::{ContextCounter, ContextNode, Contexts, CounterId, NodeId};

use crate::{
    naming::Resolver,
    stack_table_builder::StackTableBuilder,
    stacks::StackId,
    tasks::TaskTracker,
    weights::{ProfileCounter, WeightTableBuilder},
};

/// The contexts of a session. The address of each means what it meant at the node's time.
#[derive(Debug)]
pub(crate) struct ContextWeights {
    contexts: Contexts,
    /// The nodes by time, the latest first: those that are not added yet.
    pending: Vec<NodeId>,
    /// By [`NodeId`]: the stack of a node that has been added.
    stacks: Vec<Option<StackId>>,
    /// Only this process counts.
    only: Option<Pid>,
}

/// What a profile has of contexts beside their weights.
#[derive(Debug, Default)]
pub(crate) struct ReadContexts {
    pub counters: Vec<ContextCounter>,
    /// What is missing in them, and why.
    pub notes: Vec<String>,
}

impl ContextWeights {
    pub fn new(contexts: Contexts, only: Option<Pid>) -> Self {
        let nodes = contexts.nodes();
        let mut pending: Vec<_> = (0..).map(NodeId).zip(nodes).collect();
        // A parent is before its children in the list, and at a time that is no later.
        pending.sort_by_key(|(_, node)| node.time);
        pending.reverse();
        Self {
            pending: pending.into_iter().map(|(id, _)| id).collect(),
            stacks: vec![None; nodes.len()],
            contexts,
            only,
        }
    }

    /// Adds the nodes from before a time, or all that are left if None. The resolver must be at that time.
    pub fn add_until(
        &mut self,
        time: Option<MonotonicNs>,
        (resolver, tasks): (&mut Resolver, &mut TaskTracker),
        (stacks, weights): (&mut StackTableBuilder, &mut WeightTableBuilder),
    ) {
        while let Some(&id) = self.pending.last() {
            let Some(&node) = self.contexts.nodes().get(id.index()) else {
                return;
            };
            if time.is_some_and(|time| node.time >= time) {
                return;
            }
            self.pending.pop();
            if self.only.is_some_and(|only| only != node.pid) {
                continue;
            }
            let stack = self.stack_of(node, resolver, stacks);
            if let Some(place) = self.stacks.get_mut(id.index()) {
                *place = stack;
            }
            let task = match node.tid {
                Some(tid) => tasks.task((node.pid, tid), node.time),
                None => tasks.process_task(node.pid, node.time),
            };
            let counters = (0..).map(CounterId).zip(self.contexts.counters());
            let values = counters.map(|(counter, _)| {
                let value = self.contexts.value(id, counter);
                (ProfileCounter::Context(counter), value)
            });
            weights.add(task, stack, values);
        }
    }

    /// The stack of a node: its method below its parent's stack.
    fn stack_of(
        &self,
        node: ContextNode,
        resolver: &mut Resolver,
        stacks: &mut StackTableBuilder,
    ) -> Option<StackId> {
        let parent = node
            .parent
            .and_then(|parent| self.stacks.get(parent.index()));
        let parent = parent.copied().flatten();
        let method = FrameAddress::Instruction(node.address);
        // What the compiler inlined at the method's first instruction is not the method.
        let frames = resolver.user_frames(node.pid, method);
        match frames.last() {
            Some(frame) => stacks.child(parent, *frame),
            None => parent,
        }
    }

    /// The counters, and what to say of the contexts.
    pub fn finish(self) -> ReadContexts {
        let incomplete = self.contexts.processes().iter().filter_map(|process| {
            let why = process.incomplete.as_ref()?;
            Some(format!(
                "the counts of process {} are incomplete: {why}",
                process.pid
            ))
        });
        let damage = self.contexts.damage();
        let damage = damage.map(|found| format!("{found}; what follows is left out"));
        ReadContexts {
            notes: incomplete.chain(damage).collect(),
            counters: self.contexts.counters().to_vec(),
        }
    }
}
