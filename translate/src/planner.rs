//! Plans a function: finds its blocks, issues each to a pipeline, and chooses what is counted.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use varid_machine::{Block, BlockId, Counts, Exit, Interpreter, Link, Timing};
use varid_model::Address;
use varid_processor::{CacheLayouts, Cycles, Pending, Pipeline, Slot, Unsupported, Variation};
use varid_riscv::{Alu, Instruction, Length, Operation, Register, Width};

use crate::{
    flow::{Executions, Flow},
    held::Held,
    plan::{
        ByAlignment, Cached, CounterId, Edge, Entries, Extra, Leave, Plan, Return, Version,
        VersionId, WAYS, Way, straddles,
    },
    state::Passage,
};

/// The most instructions of all blocks of a function. What exceeds them is interpreted.
const MAX_INSTRUCTIONS: usize = 1 << 15;
/// The address of a target that is not known: no program has it, nor has it a line of a program.
const PROBE: u64 = 1 << 63;

/// A function that is planned.
#[derive(Debug)]
pub struct Planned {
    /// What is translated.
    pub plan: Plan,
    /// Which ways are counted.
    pub flow: Flow,
    /// Which counters are in registers of the host.
    pub held: Held,
}

/// How often the ways of each block of a plan were taken until now, by any of its versions.
fn executions(plan: &Plan, counts: &Counts) -> Executions {
    let mut known: HashMap<BlockId, [u64; WAYS]> = HashMap::new();
    for cell in &counts.cells {
        let not_taken = cell.executions.saturating_sub(cell.taken);
        let ways = known.entry(cell.block).or_default();
        for (way, more) in ways.iter_mut().zip([not_taken, cell.taken]) {
            *way = way.saturating_add(more);
        }
    }
    let versions = plan.versions.iter();
    let ways = versions.map(|version| known.get(&version.id).copied().unwrap_or_default());
    ways.collect()
}

/// Makes a plan.
pub struct Planner<'e, 'p> {
    interpreter: &'e mut Interpreter,
    timing: &'e mut Timing<'p>,
    entries: &'e mut Entries,
    function: u32,
    plan: Plan,
    known: HashMap<(u32, Pending), VersionId>,
    slots: Vec<Rc<[Slot]>>,
    instructions: usize,
    /// Jumps to instructions that lie in one word and in two.
    probes: [Slot; WAYS],
    has_caches: bool,
}

impl<'e, 'p> Planner<'e, 'p> {
    /// Begins with a function, by its address, and the addresses at which it is entered.
    ///
    /// # Errors
    ///
    /// The processor does not even add.
    pub fn new(
        interpreter: &'e mut Interpreter,
        timing: &'e mut Timing<'p>,
        entries: &'e mut Entries,
        function: u32,
    ) -> Result<Self, Unsupported> {
        let nothing = Instruction {
            operation: Operation::AluImmediate(Alu::Add),
            rd: Register::ZERO,
            rs1: Register::ZERO,
            rs2: Register::ZERO,
            rs3: Register::ZERO,
            immediate: 0,
            length: Length::Four,
        };
        let processor = timing.processor();
        let probe = |address| Slot::new(processor, &nothing, Address::new(address), None);
        let probes = [probe(PROBE)?, probe(PROBE | 2)?];
        let has_caches = timing.caches() != CacheLayouts::default();
        Ok(Self {
            interpreter,
            has_caches,
            timing,
            entries,
            function,
            plan: Plan::default(),
            known: HashMap::new(),
            slots: Vec::new(),
            instructions: 0,
            probes,
        })
    }

    /// Plans all that is reached from the entries, and from the jumps to registers that were seen.
    pub fn plan(mut self, targets: &BTreeSet<u32>) -> Planned {
        self.enter(self.function);
        for target in targets {
            if let Some(version) = self.version(*target, Pending::default()) {
                self.plan.targets.push((*target, version));
            }
        }
        let mut next = 0;
        let mut entered = 0;
        loop {
            // Blocks behind calls become entries while blocks are planned.
            while let Some(address) = self.entries.address(entered) {
                let version = self.version(address, Pending::default());
                self.plan.entries.push(version);
                entered = entered.saturating_add(1);
            }
            if next >= self.plan.versions.len() {
                break;
            }
            self.complete(VersionId(next));
            next = next.saturating_add(1);
        }
        let executions = executions(&self.plan, self.interpreter.counts());
        let flow = Flow::of(&self.plan, &executions);
        let held = Held::of(&self.plan, &flow, &executions);
        Planned {
            plan: self.plan,
            flow,
            held,
        }
    }

    fn enter(&mut self, address: u32) -> u32 {
        self.entries.add(address)
    }

    fn counters(&mut self, count: usize) -> CounterId {
        let first = CounterId(self.plan.counters);
        self.plan.counters = self.plan.counters.saturating_add(count);
        first
    }

    fn block(&mut self, address: u32) -> Option<(BlockId, Rc<[Slot]>)> {
        let id = self.interpreter.block_at(address).ok()?;
        let block = self.interpreter.counts().block(id)?;
        Some((id, self.timing.slots(id, block).ok()?))
    }

    /// Returns the version of the block at an address. None: it is interpreted.
    fn version(&mut self, address: u32, pending: Pending) -> Option<VersionId> {
        let key = (address, pending);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let (id, slots) = self.block(address)?;
        let block = self.interpreter.counts().block(id)?.clone();
        let first = block.instructions.first();
        let has_room = self.instructions < MAX_INSTRUCTIONS;
        if !has_room || !first.is_some_and(is_translated) {
            return None;
        }
        self.instructions = self.instructions.saturating_add(block.instructions.len());
        let counter = self.counters(WAYS.saturating_mul(2).saturating_add(1));
        let version = VersionId(self.plan.versions.len());
        self.plan.versions.push(Version {
            id,
            block,
            pending: key.1.clone(),
            cycles: Vec::new(),
            extras: Vec::new(),
            leave: Leave::Interpret,
            counter,
            cached: Cached::default(),
        });
        self.slots.push(slots);
        self.known.insert(key, version);
        Some(version)
    }

    /// Finds out what a block takes, and where it leads to.
    fn complete(&mut self, id: VersionId) {
        let Some((version, slots)) = self.plan.versions.get(id.0).zip(self.slots.get(id.0)) else {
            return;
        };
        let (block, slots) = (version.block.clone(), Rc::clone(slots));
        let mut pipeline = Pipeline::of_hits(self.timing.processor());
        // Long after the registers were there with which a program begins.
        pipeline.advance(Cycles(u32::MAX.into()));
        pipeline.restart(&version.pending);
        let mut cycles: Vec<Cycles> = Vec::new();
        let mut extras = Vec::new();
        let mut cached = Cached::default();
        for (index, (instruction, slot)) in block.instructions.iter().zip(&*slots).enumerate() {
            if !is_translated(instruction) {
                break;
            }
            let issue = pipeline.issue(slot, slot.least_operands());
            if index == 0 {
                cached.first = pipeline.take_fetched();
            }
            if matches!(instruction.operation, Operation::Load(..)) && pipeline.may_repeat() {
                cached.repeats.push(index);
            }
            let duration = slot.duration();
            match duration.varies {
                // The interpreter divides by zero.
                Variation::None | Variation::ZeroDivisor(_) => {}
                // However long it takes, nothing else is awaited behind it.
                _ if pipeline.pending().is_only(instruction.writes()) => extras.push(Extra {
                    index,
                    duration,
                    counter: self.counters(1),
                }),
                _ => break,
            }
            if let Some(before) = cycles.last_mut() {
                *before = before.plus(issue.previous);
            }
            cycles.push(issue.own);
        }
        cached.lines = pipeline.take_fetched();
        let leave = match cycles.len() == block.instructions.len() {
            true => self.leave(&block, &pipeline, &mut cached.edges),
            false => {
                if block.exit == Exit::Environment {
                    self.enter(block.end);
                }
                Leave::Interpret
            }
        };
        if let Some(version) = self.plan.versions.get_mut(id.0) {
            version.cycles = cycles;
            version.extras = extras;
            version.leave = leave;
            version.cached = cached;
        }
    }

    fn leave(&mut self, block: &Block, pipeline: &Pipeline<'_>, edges: &mut [Edge; WAYS]) -> Leave {
        let [first, second] = edges;
        match block.exit {
            Exit::Next => Leave::Always(self.way(pipeline, block.end, first)),
            Exit::Branch { target } => Leave::Branch {
                next: self.way(pipeline, block.end, first),
                taken: self.way(pipeline, target, second),
            },
            Exit::Jump { target, link } => match link {
                Link::Return | Link::None => Leave::Always(self.way(pipeline, target, first)),
                Link::Call => {
                    let returns = self.returns(block.end);
                    match self.arrival(pipeline, target, first) {
                        Some((cycles, pending)) if pending.is_empty() => Leave::Call {
                            cycles,
                            passage: self.counters(Passage::COUNTERS),
                            returns,
                        },
                        _ => Leave::Interpret,
                    }
                }
            },
            Exit::JumpRegister { link } => {
                let Some(cycles) = self.unknown(pipeline, first) else {
                    return Leave::Interpret;
                };
                second.clone_from(first);
                match link {
                    Link::Call => Leave::CallRegister {
                        cycles,
                        passages: self.counters(Passage::COUNTERS.saturating_mul(Passage::ROWS)),
                        returns: self.returns(block.end),
                    },
                    Link::Return => Leave::Return { cycles },
                    Link::None => Leave::Switch { cycles },
                }
            }
            Exit::Environment => Leave::Interpret,
        }
    }

    fn returns(&mut self, address: u32) -> Return {
        // A block may be known, and have no translation.
        let version = self.version(address, Pending::default());
        let Some((id, _)) = self.block(address).filter(|_| version.is_some()) else {
            return Return {
                entry: 0,
                straddles: false,
            };
        };
        let block = self.interpreter.counts().block(id);
        Return {
            straddles: block.is_some_and(|block| straddles(address, block)),
            entry: self.enter(address),
        }
    }

    fn way(&mut self, pipeline: &Pipeline<'_>, target: u32, edge: &mut Edge) -> Way {
        let Some((cycles, pending)) = self.arrival(pipeline, target, edge) else {
            return Way::Interpret;
        };
        let function = self.interpreter.machine().functions.start(target);
        let is_elsewhere = function.is_some_and(|function| function != self.function);
        match (is_elsewhere, pending.is_empty()) {
            (true, true) => Way::Function(self.counters(Passage::COUNTERS), cycles),
            (true, false) => Way::Interpret,
            (false, is_empty) => {
                edge.may_repeat = pending.may_repeat();
                let mut others = Vec::new();
                if self.has_caches && !is_empty {
                    others.push(Pending::default());
                    others.extend(pending.without_store());
                }
                let others = others.into_iter().map(|other| self.version(target, other));
                let others: Option<Vec<_>> = others.collect();
                match (self.version(target, pending), others) {
                    (Some(version), Some(others)) => {
                        edge.others = others;
                        Way::Block(version, cycles)
                    }
                    _ => Way::Interpret,
                }
            }
        }
    }

    /// What it takes to go on at a target, and what is awaited there. None: there is no code.
    fn arrival(
        &mut self,
        pipeline: &Pipeline<'_>,
        target: u32,
        edge: &mut Edge,
    ) -> Option<(Cycles, Pending)> {
        let (_, slots) = self.block(target)?;
        let mut pipeline = pipeline.clone();
        let before = pipeline.events();
        let cycles = pipeline.arrive_at(slots.first()?);
        edge.is_mispredicted = pipeline.events().mispredicted != before.mispredicted;
        edge.lines = pipeline.take_fetched();
        Some((cycles, pipeline.pending()))
    }

    /// What it takes to go on at an unknown target. None: something is awaited there.
    fn unknown(&self, pipeline: &Pipeline<'_>, edge: &mut Edge) -> Option<ByAlignment> {
        let cycles = self.probes.map(|probe| {
            let mut pipeline = pipeline.clone();
            let cycles = pipeline.arrive_at(&probe);
            edge.lines = pipeline.take_fetched();
            pipeline.pending().is_empty().then_some(cycles)
        });
        // The target's own lines are not those of a probe.
        edge.lines.retain(|line| *line < PROBE >> u32::BITS);
        match cycles {
            [Some(whole), Some(straddling)] => Some([whole, straddling]),
            _ => None,
        }
    }
}

/// Returns true if there is a translation of an instruction.
const fn is_translated(instruction: &Instruction) -> bool {
    match instruction.operation {
        Operation::Lui
        | Operation::Auipc
        | Operation::Jal
        | Operation::Jalr
        | Operation::Branch(_)
        | Operation::AluImmediate(_)
        | Operation::Alu(_)
        | Operation::Multiply(_)
        | Operation::Divide(_)
        | Operation::Fence => true,
        Operation::Load(width, _) | Operation::Store(width) => !matches!(width, Width::Double),
        _ => false,
    }
}
