//! Converts a session's calling contexts: nodes become stacks, and counters become columns of weights.
//!
//! A caller's frame is at the line of its call site. The leaf's frame is at the line of the place that was counted, or at
//! the method's first line.

use varid_model::{Address, CodeUnits, FrameAddress, MonotonicNs, Pid};
use varid_recording::{ContextCounter, ContextNode, Contexts, NodeId};

use crate::{
    context_addresses::{ContextAddresses, CountedAddress},
    frames::{FrameId, ImageOffset},
    naming::Resolver,
    options::Options,
    sampled_addresses,
    stack_table_builder::StackTableBuilder,
    stacks::StackId,
    tasks::{TaskId, TaskTracker, ThreadKey},
    weights::{ProfileCounter, WeightTableBuilder},
};

/// The contexts of a session. Each address is resolved with the mappings at the node's time.
#[derive(Debug)]
pub(crate) struct ContextWeights {
    contexts: Contexts,
    /// The nodes that have not been added yet, latest first.
    pending: Vec<NodeId>,
    /// By [`NodeId`]. None if the node has not been added.
    added: Vec<Option<AddedNode>>,
    /// By [`MethodId`](varid_recording::MethodId): the frame of the method's first instruction, as of its first node.
    methods: Vec<Option<FrameId>>,
    roots: Vec<ContextRoot>,
    /// The counted instructions, if [`Options::sampled_addresses`] is set.
    addresses: Option<ContextAddresses>,
    /// If set, all other processes are ignored.
    only: Option<Pid>,
}

/// A calling context that has no caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContextRoot {
    pub node: NodeId,
    /// Its thread, or its process if the tree has all threads.
    pub task: TaskId,
}

/// A node that has been added.
#[derive(Debug, Clone, Copy)]
struct AddedNode {
    /// The stack of its callers.
    callers: Option<StackId>,
    /// Its method's first instruction.
    first: Instruction,
}

/// An instruction with its frame, in which functions that were inlined at it are skipped.
#[derive(Debug, Clone, Copy)]
struct Instruction {
    pid: Pid,
    address: Address,
    /// None if nothing is known of the address.
    frame: Option<FrameId>,
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
    pub addresses: Vec<CountedAddress>,
    /// By [`MethodId`](varid_recording::MethodId): the frame of the method's first instruction. None if nothing is known of its address, or if it has no selected node.
    pub methods: Vec<Option<FrameId>>,
    /// The nodes that have no caller.
    pub roots: Vec<ContextRoot>,
    /// Reasons for missing data.
    pub notes: Vec<String>,
}

impl ContextWeights {
    pub fn new(contexts: Contexts, options: &Options) -> Self {
        let nodes = contexts.nodes();
        let mut pending: Vec<_> = (0..).map(NodeId).zip(nodes).collect();
        // A parent precedes its children in the list and is not later than them.
        pending.sort_by_key(|(_, node)| node.time);
        pending.reverse();
        Self {
            pending: pending.into_iter().map(|(id, _)| id).collect(),
            added: vec![None; nodes.len()],
            methods: vec![None; contexts.methods().len()],
            roots: Vec::new(),
            addresses: options.sampled_addresses.then(ContextAddresses::default),
            contexts,
            only: options.tasks.pid,
        }
    }

    /// Adds the nodes before `time`, or all remaining nodes if None. The resolver must be at that time.
    pub fn add_until(&mut self, time: Option<MonotonicNs>, mut target: ContextTarget<'_>) {
        while let Some(&id) = self.pending.last() {
            let Some(&node) = self.contexts.node(id) else {
                return;
            };
            if time.is_some_and(|time| node.time >= time) {
                return;
            }
            self.pending.pop();
            if self.only.is_none_or(|only| only == node.pid) {
                self.add(id, &node, &mut target);
            }
        }
    }

    /// Adds a node with its counts.
    fn add(&mut self, id: NodeId, node: &ContextNode, target: &mut ContextTarget<'_>) {
        let first = Instruction::at(node.pid, node.address, target);
        let callers = self.callers(id, node, target);
        if let Some(added) = self.added.get_mut(id.index()) {
            *added = Some(AddedNode { callers, first });
        }
        let method = self.contexts.method_of(id);
        if let Some(known) = method.and_then(|method| self.methods.get_mut(method.index())) {
            *known = known.or(first.frame);
        }
        let task = match node.tid {
            Some(tid) => {
                let pid = node.pid;
                target.tasks.task(ThreadKey { pid, tid }, node.time)
            }
            None => target.tasks.process_task(node.pid, node.time),
        };
        if node.parent.is_none() {
            self.roots.push(ContextRoot { node: id, task });
        }
        for count in self.contexts.counts(id) {
            let place = match count.place {
                Some(units) => first.after(CodeUnits::new(units), target),
                None => first,
            };
            let counter = ProfileCounter::Context(count.counter);
            let stack = place.below(callers, target);
            target.weights.add(task, stack, [(counter, count.value)]);
            if let (Some(addresses), Some(place)) = (&mut self.addresses, place.offset(target)) {
                addresses.add_count(id, place, count.counter, count.value);
            }
        }
    }

    /// Returns the stack of a node's callers, the innermost one at its call site.
    fn callers(
        &mut self,
        id: NodeId,
        node: &ContextNode,
        target: &mut ContextTarget<'_>,
    ) -> Option<StackId> {
        let caller = node.parent?;
        let AddedNode { callers, first } = (*self.added.get(caller.index())?)?;
        let site = node.site.and_then(|site| self.contexts.site(site));
        let call = site.map(|site| first.after(site.pc, target));
        if let Some(addresses) = &mut self.addresses {
            let place = call.and_then(|call| call.offset(target));
            addresses.add_call(id, caller, place);
        }
        call.unwrap_or(first).below(callers, target)
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
            methods: self.methods,
            roots: self.roots,
            addresses: self
                .addresses
                .map(ContextAddresses::finish)
                .unwrap_or_default(),
        }
    }
}

impl Instruction {
    fn at(pid: Pid, address: Address, target: &mut ContextTarget<'_>) -> Self {
        let lookup = FrameAddress::Instruction(address);
        let frame = target.resolver.user_frames(pid, lookup).last().copied();
        Self {
            pid,
            address,
            frame,
        }
    }

    /// Returns the instruction so far after a method's first one. It is the first one if the place is not in the method.
    fn after(self, place: CodeUnits, target: &mut ContextTarget<'_>) -> Self {
        let unit = target.resolver.code_unit(self.pid, self.address);
        let address = self.address.get().saturating_add(place.to_bytes(unit));
        let found = Self::at(self.pid, Address::new(address), target);
        let symbol = |instruction: Self| {
            let (_, frame) = target.resolver.frame(instruction.frame?)?;
            Some(frame.symbol)
        };
        match symbol(found) == symbol(self) {
            true => found,
            false => self,
        }
    }

    /// Returns the stack of the instruction below its callers.
    fn below(self, callers: Option<StackId>, target: &mut ContextTarget<'_>) -> Option<StackId> {
        match self.frame {
            Some(frame) => target.stacks.child(callers, frame),
            None => callers,
        }
    }

    /// Returns the file of the instruction and its offset.
    fn offset(self, target: &ContextTarget<'_>) -> Option<ImageOffset> {
        let address = FrameAddress::Instruction(self.address);
        sampled_addresses::place(target.resolver, self.pid, address)
    }
}
