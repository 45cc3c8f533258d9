//! Converts a session's calling contexts: nodes become stacks, and counters become columns of weights.

use varid_model::{FrameAddress, MonotonicNs, Pid};
use varid_recording::{ContextCounter, ContextNode, Contexts, CounterId, NodeId};

use crate::{
    naming::Resolver,
    stack_table_builder::StackTableBuilder,
    stacks::StackId,
    tasks::{TaskTracker, ThreadKey},
    weights::{ProfileCounter, WeightTableBuilder},
};

/// The contexts of a session. Each address is resolved with the mappings at the node's time.
#[derive(Debug)]
pub(crate) struct ContextWeights {
    contexts: Contexts,
    /// The nodes that have not been added yet, latest first.
    pending: Vec<NodeId>,
    /// By [`NodeId`]: the stack of each added node.
    stacks: Vec<Option<StackId>>,
    /// If set, all other processes are ignored.
    only: Option<Pid>,
}

/// The parts of a profile to which contexts are added.
#[derive(Debug)]
pub(crate) struct ContextTarget<'b> {
    pub resolver: &'b mut Resolver,
    pub tasks: &'b mut TaskTracker,
    pub stacks: &'b mut StackTableBuilder,
    pub weights: &'b mut WeightTableBuilder,
}

/// The parts of a profile that come from contexts, except the weights.
#[derive(Debug, Default)]
pub(crate) struct ReadContexts {
    pub counters: Vec<ContextCounter>,
    /// Reasons for missing data.
    pub notes: Vec<String>,
}

impl ContextWeights {
    pub fn new(contexts: Contexts, only: Option<Pid>) -> Self {
        let nodes = contexts.nodes();
        let mut pending: Vec<_> = (0..).map(NodeId).zip(nodes).collect();
        // A parent precedes its children in the list and is not later than them.
        pending.sort_by_key(|(_, node)| node.time);
        pending.reverse();
        Self {
            pending: pending.into_iter().map(|(id, _)| id).collect(),
            stacks: vec![None; nodes.len()],
            contexts,
            only,
        }
    }

    /// Adds the nodes before `time`, or all remaining nodes if None. The resolver must be at that time.
    pub fn add_until(&mut self, time: Option<MonotonicNs>, target: ContextTarget<'_>) {
        let ContextTarget {
            resolver,
            tasks,
            stacks,
            weights,
        } = target;
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
                Some(tid) => {
                    let pid = node.pid;
                    tasks.task(ThreadKey { pid, tid }, node.time)
                }
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

    /// Returns the stack of a node: its method below its parent's stack.
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
        // Skip functions that were inlined at the method's first instruction.
        let frames = resolver.user_frames(node.pid, method);
        match frames.last() {
            Some(frame) => stacks.child(parent, *frame),
            None => parent,
        }
    }

    /// Returns the counters and the notes.
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
