//! Simulates method caches over the order of calls.
//!
//! Events are entries of methods, and of blocks with instructions that access the cache. An event of a context says that all calls above it
//! have returned. Between two events the simulation executes what is left of a block: instructions of the target's runtime call their
//! methods, and return. An exception that leaves a block in the middle is taken for its end.

use std::collections::{BTreeMap, HashMap};

use varid_recording::{CallEvent, NodeId};

use crate::{
    cost_model::{CostModel, PricedInstruction, PricedMethod, Transfer},
    error::{Error, Result},
    method_cache::{Access, CodeId, FifoVariableBlock, Geometry, MethodCache, Words},
    program::{Program, ProgramNode},
    target::{LoadTimes, ResultKind, RuntimeMethod, Target},
};

/// An access of the method cache by an instruction that calls a method of the runtime.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RuntimeAccess {
    /// The index of the runtime's method in the chain of those that call each other. None: the instruction's own method, on return.
    pub code: Option<usize>,
    /// The length of the code that is accessed.
    pub words: Words,
    /// How much of the access is hidden.
    pub hides: f64,
}

/// Returns the accesses of a method of the runtime that is called from code of this length.
pub(crate) fn runtime_accesses(
    method: &RuntimeMethod,
    load: &LoadTimes,
    caller: Words,
) -> Vec<RuntimeAccess> {
    let calls = method
        .words
        .iter()
        .enumerate()
        .map(|(index, words)| RuntimeAccess {
            code: Some(index),
            words: *words,
            hides: load.invoke_hides,
        });
    let hides = load.hidden_by(method.result);
    let callers = method.words.iter().enumerate().rev().skip(1);
    let returns = callers.map(|(index, words)| RuntimeAccess {
        code: Some(index),
        words: *words,
        hides,
    });
    let last = RuntimeAccess {
        code: None,
        words: caller,
        hides,
    };
    calls.chain(returns).chain([last]).collect()
}

/// What a cache has cost in the contexts that are priced.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheCharges {
    /// The cache.
    pub geometry: Geometry,
    /// All of it, in the target's unit.
    pub total: f64,
    /// Accesses that found their code.
    pub hits: u64,
    /// Accesses that loaded their code.
    pub misses: u64,
    /// By the context and the index of its instruction. None: its returns.
    pub places: BTreeMap<(NodeId, Option<usize>), f64>,
    /// How often instructions that call the runtime were simulated, and those whose calls are no events. All others are not in the order.
    pub executed: HashMap<(NodeId, usize), u64>,
}

struct Simulated {
    cache: FifoVariableBlock,
    charges: CacheCharges,
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
struct Frame {
    node: NodeId,
    /// The next instruction of the block that is executed. None: nothing is known of the block.
    next: Option<usize>,
    /// Whether it has executed nothing.
    is_new: bool,
}

/// A simulation of several caches of a target.
pub struct Replay<'p> {
    program: &'p Program,
    priced: &'p [Option<PricedMethod>],
    model: CostModel<'p>,
    load: &'p LoadTimes,
    /// The first number of the code of each method of the runtime.
    runtime: BTreeMap<&'p str, u32>,
    caches: Vec<Simulated>,
    /// The number of callers of each context.
    depths: Vec<u32>,
    /// The only method that is called at a place, where calls are no events.
    leaves: HashMap<(NodeId, usize), Option<usize>>,
    stack: Vec<Frame>,
    executed: HashMap<(NodeId, usize), u64>,
    /// How many more events there can be: each is of a call or of an instruction that was counted.
    left: u64,
}

/// Returns an upper bound of the number of events. A thread that was killed may have written its last one before it counted. There is no
/// bound if a session had no room for the counts of single instructions.
fn most_events(program: &Program) -> u64 {
    let counts = program.nodes.iter().map(|node| {
        if node.executions.is_empty() && !node.is_leaf && node.calls > 0 {
            return u64::MAX;
        }
        let executions = node.executions.iter().map(|(_, count)| *count);
        executions.fold(node.calls.saturating_add(1), u64::saturating_add)
    });
    counts.fold(0, u64::saturating_add)
}

impl<'p> Replay<'p> {
    /// Starts with empty caches. None: the target has no method cache. Places are kept of the first cache only.
    #[must_use]
    pub fn new(
        program: &'p Program,
        target: &'p Target,
        priced: &'p [Option<PricedMethod>],
        geometries: &[Geometry],
    ) -> Option<Self> {
        let load = &target.method_cache.as_ref()?.load;
        let mut code = u32::try_from(program.methods.len()).unwrap_or(u32::MAX);
        let mut runtime = BTreeMap::new();
        for (key, method) in &target.runtime {
            runtime.insert(key.as_str(), code);
            code = code.saturating_add(u32::try_from(method.words.len()).unwrap_or(u32::MAX));
        }
        let caches = geometries.iter().map(|geometry| Simulated {
            cache: FifoVariableBlock::new(geometry),
            charges: CacheCharges {
                geometry: *geometry,
                total: 0.0,
                hits: 0,
                misses: 0,
                places: BTreeMap::new(),
                executed: HashMap::new(),
            },
        });
        let mut depths: Vec<u32> = Vec::with_capacity(program.nodes.len());
        for node in &program.nodes {
            let parent = node.parent.and_then(|parent| depths.get(parent.index()));
            depths.push(parent.map_or(0, |depth| depth.saturating_add(1)));
        }
        Some(Self {
            program,
            priced,
            model: CostModel::new(target),
            load,
            runtime,
            caches: caches.collect(),
            depths,
            leaves: leaves(program),
            stack: Vec::new(),
            executed: HashMap::new(),
            left: most_events(program),
        })
    }

    /// Executes a thread from its first to its last event. What other threads have left is in the caches.
    ///
    /// # Errors
    ///
    /// An event cannot be read, or there are more events than counts.
    pub fn thread(
        &mut self,
        events: impl IntoIterator<Item = varid_recording::Result<CallEvent>>,
    ) -> Result<()> {
        for event in events {
            let event = event?;
            self.left = self.left.checked_sub(1).ok_or_else(|| {
                Error::Counts("the order of calls has more events than there are counts: it is damaged, or of another run".to_owned())
            })?;
            match event {
                CallEvent::Enter(node) => self.enter(node),
                CallEvent::Block { node, start } => {
                    self.return_to(self.run_by_program(node));
                    let is_run = self.program.node(node).is_some_and(|node| node.is_run);
                    let code = self
                        .program
                        .node(node)
                        .and_then(|node| self.program.code(node));
                    let index = code.and_then(|code| code.at(start)).filter(|_| is_run);
                    if let Some(index) = index {
                        self.start_block(index);
                    }
                }
            }
        }
        self.return_to(None);
        Ok(())
    }

    /// Returns what the caches have cost, in the order of their geometries.
    #[must_use]
    pub fn finish(mut self) -> Vec<CacheCharges> {
        if let Some(first) = self.caches.first_mut() {
            first.charges.executed = self.executed;
        }
        self.caches.into_iter().map(|cache| cache.charges).collect()
    }

    fn count(&mut self, id: NodeId, index: usize) {
        let count = self.executed.entry((id, index)).or_default();
        *count = count.saturating_add(1);
    }

    /// Returns the innermost context from this one outwards that is a part of the program. None: there is none.
    fn run_by_program(&self, node: NodeId) -> Option<NodeId> {
        let mut at = Some(node);
        while let Some(id) = at {
            let node = self.program.node(id)?;
            if node.is_run {
                return Some(id);
            }
            at = node.parent;
        }
        None
    }

    fn depth(&self, node: NodeId) -> usize {
        let depth = self.depths.get(node.index()).copied().unwrap_or_default();
        usize::try_from(depth).unwrap_or(usize::MAX)
    }

    fn enter(&mut self, id: NodeId) {
        let Some(node) = self.program.node(id) else {
            return;
        };
        if !node.is_run {
            self.return_to(self.run_by_program(id));
            return;
        }
        self.return_to(node.parent);
        let caller = node
            .parent
            .zip(node.parent.and_then(|parent| self.program.node(parent)));
        let mut place = None;
        if let Some((caller, caller_node)) = caller {
            let code = self.program.code(caller_node);
            let site = node.site.and_then(|site| code?.at(site));
            if site.is_some() {
                self.execute(site);
            }
            place = Some((caller, site));
        }
        if let Some((code, words)) = self.code_of(node) {
            let place = place.filter(|(_, site)| site.is_some());
            self.access(code, words, self.load.invoke_hides, place);
        }
        if let Some(priced) = self.priced_of(node) {
            self.call_runtime(id, node, Some(0), &priced.entry);
        }
        self.stack.push(Frame {
            node: id,
            next: Some(0),
            is_new: true,
        });
    }

    fn start_block(&mut self, index: usize) {
        let Some(frame) = self.stack.last_mut() else {
            return;
        };
        // Where a branch leads to the first block, an entry is followed by the event of the block.
        if !(index == 0 && frame.is_new) {
            self.execute(None);
        }
        if let Some(frame) = self.stack.last_mut() {
            (frame.next, frame.is_new) = (Some(index), false);
        }
    }

    /// Returns from calls until a context is the innermost one. None: from all calls. If the context has not been entered
    /// as far as is known, it is now, without an access of the cache.
    fn return_to(&mut self, wanted: Option<NodeId>) {
        let Some(wanted) = wanted else {
            while !self.stack.is_empty() {
                self.return_once();
            }
            return;
        };
        let mut missing = Vec::new();
        let mut at = Some(wanted);
        let mut depth = 0;
        while let Some(node) = at {
            let on_stack = self.stack.get(self.depth(node));
            if on_stack.is_some_and(|frame| frame.node == node) {
                depth = self.depth(node).saturating_add(1);
                break;
            }
            missing.push(node);
            at = self.program.node(node).and_then(|node| node.parent);
        }
        while self.stack.len() > depth {
            self.return_once();
        }
        let missing = missing.into_iter().rev();
        self.stack.extend(missing.map(|node| Frame {
            node,
            next: None,
            is_new: false,
        }));
    }

    /// Executes the rest of the innermost call's block, and returns from it.
    fn return_once(&mut self) {
        self.execute(None);
        let Some(returned) = self.stack.pop() else {
            return;
        };
        if let Some(node) = self.program.node(returned.node)
            && let Some(priced) = self.priced_of(node)
        {
            self.call_runtime(returned.node, node, None, &priced.exit);
        }
        let caller = self
            .stack
            .last()
            .and_then(|frame| self.program.node(frame.node));
        let Some((code, words)) = caller.and_then(|caller| self.code_of(caller)) else {
            return;
        };
        let result = self
            .program
            .node(returned.node)
            .map(|node| self.result_of(node.method));
        let hides = self.load.hidden_by(result.unwrap_or(ResultKind::Void));
        self.access(code, words, hides, Some((returned.node, None)));
    }

    /// Executes the innermost call's block up to an instruction that calls, or to its end.
    fn execute(&mut self, until: Option<usize>) {
        let Some(frame) = self.stack.last_mut() else {
            return;
        };
        frame.is_new = false;
        let (id, mut next) = (frame.node, frame.next.take());
        let program = self.program;
        let Some(node) = program.node(id) else {
            return;
        };
        let (Some(code), Some(priced)) = (program.code(node), self.priced_of(node)) else {
            return;
        };
        while let Some(index) = next {
            let Some(instruction) = code.instructions.get(index) else {
                break;
            };
            let behind = index.saturating_add(1);
            let is_same_block = instruction.falls_through
                && code
                    .instructions
                    .get(behind)
                    .is_some_and(|behind| !behind.leads);
            next = is_same_block.then_some(behind);
            if until == Some(index) {
                break;
            }
            if let Some(instruction) = priced.instructions.get(index) {
                if !instruction.transfer.runtime_keys().is_empty() {
                    self.count(id, index);
                    self.call_runtime(id, node, Some(index), instruction);
                }
                if instruction.transfer == Transfer::Invoke {
                    self.call_leaf(id, node, index);
                }
            }
        }
        if let Some(frame) = self.stack.last_mut() {
            frame.next = next;
        }
    }

    /// Calls the methods of the runtime that an instruction stands for. `index` is where that is charged to. None: the returns.
    fn call_runtime(
        &mut self,
        id: NodeId,
        node: &ProgramNode,
        index: Option<usize>,
        instruction: &PricedInstruction,
    ) {
        let Some((own, words)) = self.code_of(node) else {
            return;
        };
        for key in instruction.transfer.runtime_keys() {
            let first = self.runtime.get(key.as_str()).copied();
            let (Some(method), Some(first)) = (self.model.runtime(key), first) else {
                continue;
            };
            for access in runtime_accesses(method, self.load, words) {
                let code = match access.code {
                    Some(number) => {
                        let number = u32::try_from(number).unwrap_or(u32::MAX);
                        CodeId(first.saturating_add(number))
                    }
                    None => own,
                };
                self.access(code, access.words, access.hides, Some((id, index)));
            }
        }
    }

    fn call_leaf(&mut self, id: NodeId, node: &ProgramNode, index: usize) {
        let Some(Some(method)) = self.leaves.get(&(id, index)).copied() else {
            return;
        };
        let callee = self.code_of_method(method).zip(self.code_of(node));
        let Some(((code, words), (own, own_words))) = callee else {
            return;
        };
        self.count(id, index);
        let place = Some((id, Some(index)));
        self.access(code, words, self.load.invoke_hides, place);
        let hides = self.load.hidden_by(self.result_of(method));
        self.access(own, own_words, hides, place);
    }

    fn result_of(&self, method: usize) -> ResultKind {
        let method = self.program.methods.get(method);
        let name = method.and_then(|method| method.name.as_ref());
        name.map_or(ResultKind::Void, |name| {
            ResultKind::of_descriptor(&name.descriptor)
        })
    }

    fn priced_of(&self, node: &ProgramNode) -> Option<&'p PricedMethod> {
        self.priced.get(node.method)?.as_ref()
    }

    fn code_of(&self, node: &ProgramNode) -> Option<(CodeId, Words)> {
        self.code_of_method(node.method)
    }

    /// Returns the number and the length of a method's code. None: it is not known.
    fn code_of_method(&self, method: usize) -> Option<(CodeId, Words)> {
        let words = self.priced.get(method)?.as_ref()?.words;
        Some((CodeId(u32::try_from(method).ok()?), words))
    }

    /// Accesses all caches, and charges what is not hidden to a place.
    fn access(
        &mut self,
        code: CodeId,
        words: Words,
        hides: f64,
        place: Option<(NodeId, Option<usize>)>,
    ) {
        let is_priced = |(node, _): &(NodeId, Option<usize>)| {
            self.program.node(*node).is_some_and(|node| node.is_priced)
        };
        let place = place.filter(is_priced);
        for (number, simulated) in self.caches.iter_mut().enumerate() {
            let is_hit = simulated.cache.access(code, words) == Access::Hit;
            let Some(place) = place else {
                continue;
            };
            let charges = &mut simulated.charges;
            let sum = if is_hit {
                &mut charges.hits
            } else {
                &mut charges.misses
            };
            *sum = sum.saturating_add(1);
            let visible = self.load.visible(is_hit, words, hides);
            charges.total += visible;
            if number == 0 && visible > 0.0 {
                *charges.places.entry(place).or_default() += visible;
            }
        }
    }
}

/// Returns the methods whose calls are no events, by the place of their calls. None: several are called there.
fn leaves(program: &Program) -> HashMap<(NodeId, usize), Option<usize>> {
    let mut found: HashMap<(NodeId, usize), Option<usize>> = HashMap::new();
    for node in &program.nodes {
        let caller = node.parent.and_then(|parent| program.node(parent));
        let code = caller.and_then(|caller| program.code(caller));
        let site = node.site.and_then(|site| code?.at(site));
        if let Some(place) = node.parent.zip(site) {
            let method = node.is_leaf.then_some(node.method);
            let known = found.entry(place).or_insert(method);
            if *known != method {
                *known = None;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
