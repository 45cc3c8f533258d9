//! What is translated of a function: its blocks, what they take, and where they lead.
//!
//! A block is planned once for each set of results that may be awaited at its beginning, because these decide what it takes. For most blocks
//! there is one.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use varid_machine::{Block, BlockId, Counts, Exit, Interpreter, Link, Timing};
use varid_model::Address;
use varid_processor::{
    CacheLayouts, Cycles, Duration, Pending, Pipeline, Slot, Unsupported, Variation,
};
use varid_riscv::{Alu, Instruction, Length, Operation, Register, Width};

use crate::{
    flow::{Executions, Flow},
    held::Held,
    state::Passage,
};

/// The most instructions of all blocks of a function. What exceeds them is interpreted.
const MAX_INSTRUCTIONS: usize = 1 << 15;
/// The ways that a block may be left by.
pub const WAYS: usize = 2;

/// A planned block, by its row in [`Plan::versions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionId(pub usize);

/// A counter of a context, by its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterId(pub usize);

impl CounterId {
    /// The counter so many rows behind this one.
    pub const fn plus(self, rows: usize) -> Self {
        Self(self.0.saturating_add(rows))
    }
}

/// A function to be translated.
#[derive(Debug, Default)]
pub struct Plan {
    /// The blocks.
    pub versions: Vec<Version>,
    /// The blocks by the numbers of [`Entries`], less 1. None: it is interpreted.
    pub entries: Vec<Option<VersionId>>,
    /// Where jumps to registers lead.
    pub targets: Vec<(u32, VersionId)>,
    /// How many counters each context of the function has.
    pub counters: usize,
    /// Which ways are counted.
    pub flow: Flow,
    /// Which counters are in registers of the host.
    pub held: Held,
}

impl Plan {
    /// The blocks at which the code is entered, or to which a jump to a register leads, or one of several ways.
    pub fn entered(&self) -> impl Iterator<Item = VersionId> {
        let targets = self.targets.iter().map(|(_, version)| *version);
        let versions = self.versions.iter();
        let parted = versions.flat_map(|version| {
            let ways = version.leave.ways().into_iter().zip(&version.cached.edges);
            ways.flat_map(|(way, edge)| match (way, edge.otherwise) {
                (Some(Way::Block(to, _)), Some(other)) => vec![to, other],
                _ => Vec::new(),
            })
        });
        let entries = self.entries.iter().flatten().copied();
        entries.chain(targets).chain(parted)
    }

    /// How often the ways of each block were taken until now, by any of its versions.
    fn executions(&self, counts: &Counts) -> Executions {
        let mut known: HashMap<BlockId, [u64; WAYS]> = HashMap::new();
        for cell in &counts.cells {
            let not_taken = cell.executions.saturating_sub(cell.taken);
            let ways = known.entry(cell.block).or_default();
            for (way, more) in ways.iter_mut().zip([not_taken, cell.taken]) {
                *way = way.saturating_add(more);
            }
        }
        let versions = self.versions.iter();
        let ways = versions.map(|version| known.get(&version.id).copied().unwrap_or_default());
        ways.collect()
    }
}

/// The addresses at which code of a function may be entered from outside. Their numbers stay the same when it is translated once more.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    addresses: Vec<u32>,
    numbers: HashMap<u32, u32>,
}

impl Entries {
    /// Returns the number of an address, which is added if it is new.
    pub fn add(&mut self, address: u32) -> u32 {
        let addresses = &mut self.addresses;
        *self.numbers.entry(address).or_insert_with(|| {
            addresses.push(address);
            addresses.len() as u32
        })
    }

    /// Returns the number of an address.
    pub fn number(&self, address: u32) -> Option<u32> {
        self.numbers.get(&address).copied()
    }
}

/// A block, if certain results are awaited at its beginning.
#[derive(Debug)]
pub struct Version {
    /// The block.
    pub id: BlockId,
    /// The same.
    pub block: Block,
    /// What is awaited.
    pub pending: Pending,
    /// The fewest cycles of each instruction that is translated.
    pub cycles: Vec<Cycles>,
    /// What instructions take beyond that.
    pub extras: Vec<Extra>,
    /// How it is left.
    pub leave: Leave,
    /// The counters of the ways that it may be left by, behind them that of its executions that stopped in it, and those of the executions by
    /// each way that were issued once more.
    pub counter: CounterId,
    /// What of its time depends on caches.
    pub cached: Cached,
}

/// What of the time of a block depends on caches: it is as planned if all lines are there.
#[derive(Debug, Default)]
pub struct Cached {
    /// The lines of code of its first instruction, which are fetched on the way to it.
    pub first: Vec<u64>,
    /// Those of its other instructions.
    pub lines: Vec<u64>,
    /// Loads that are repeated if they read the word that was stored last.
    pub repeats: Vec<usize>,
    /// By way.
    pub edges: [Edge; WAYS],
}

/// What of the time of a way out of a block depends on caches and predictions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edge {
    /// The lines of code that are fetched on the way, to the first instruction of a block of the same function.
    pub lines: Vec<u64>,
    /// Whether the branch was predicted to go another way.
    pub is_mispredicted: bool,
    /// Whether the next load may be repeated, if it reads the word that was stored last.
    pub may_repeat: bool,
    /// The block that is executed if nothing is pending there after all. None: nothing is in any case.
    pub otherwise: Option<VersionId>,
}

impl Version {
    /// The number of instructions that are translated, if the block is left as planned.
    pub fn translated(&self) -> usize {
        self.cycles.len()
    }

    /// The counter of executions that did not leave it by any of its ways.
    pub fn stopped(&self) -> CounterId {
        self.counter.plus(WAYS)
    }

    /// The counters of executions that were issued once more, by way.
    pub fn reissued(&self) -> CounterId {
        self.stopped().plus(1)
    }

    /// Where it may be noted to which context the block leads, if it goes on at this address: at one of two places.
    pub fn passages(&self, next: u32) -> Option<[CounterId; 2]> {
        let way = match (&self.leave, self.block.exit) {
            (Leave::Call { passage, .. }, _) => return Some([*passage; 2]),
            (Leave::CallRegister { passages, .. }, _) => {
                let row = Passage::row(next);
                let place = |row: usize| passages.plus(row.saturating_mul(Passage::COUNTERS));
                return Some([place(row), place(row ^ 1)]);
            }
            (Leave::Branch { taken, .. }, Exit::Branch { target }) if target == next => taken,
            (Leave::Branch { next: way, .. } | Leave::Always(way), _) => way,
            _ => return None,
        };
        match way {
            Way::Function(passage, _) => Some([*passage; 2]),
            _ => None,
        }
    }
}

/// What an instruction takes beyond the fewest cycles, by its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    /// The instruction.
    pub index: usize,
    /// How it depends on them.
    pub duration: Duration,
    /// The counter to which it is added.
    pub counter: CounterId,
}

/// How a block is left by translated code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// Behind the last instruction that is translated, to the interpreter.
    Interpret,
    /// Always by the same way.
    Always(Way),
    /// By a branch.
    Branch {
        /// If it is not taken.
        next: Way,
        /// If it is.
        taken: Way,
    },
    /// By a call to a known address.
    Call {
        /// What it takes.
        cycles: Cycles,
        /// Where it leads to.
        passage: CounterId,
        /// Where it returns to.
        returns: Return,
    },
    /// By a call to an address in a register.
    CallRegister {
        /// What it takes.
        cycles: ByAlignment,
        /// Where it led to: [`Passage::ROWS`] of them.
        passages: CounterId,
        /// Where it returns to.
        returns: Return,
    },
    /// By a return.
    Return {
        /// What it takes.
        cycles: ByAlignment,
    },
    /// By a jump to one of the plan's targets.
    Switch {
        /// What it takes.
        cycles: ByAlignment,
    },
}

/// What a jump takes to an instruction that lies in one word of memory, and to one that lies in two.
pub type ByAlignment = [Cycles; WAYS];

/// What a call says of the place that it returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Return {
    /// The number of its entry. 0: it has none.
    pub entry: u32,
    /// Whether the instruction there lies in two words of memory.
    pub straddles: bool,
}

/// Where a block leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the interpreter, which executes the last instruction, too.
    Interpret,
    /// To a block of the same context.
    Block(VersionId, Cycles),
    /// To another function, without a call.
    Function(CounterId, Cycles),
}

impl Way {
    /// What the way takes in addition to the instruction.
    pub const fn cycles(self) -> Cycles {
        match self {
            Self::Interpret => Cycles(0),
            Self::Block(_, cycles) | Self::Function(_, cycles) => cycles,
        }
    }
}

impl Leave {
    /// What the ways take, by counter.
    pub const fn cycles(&self) -> [Cycles; WAYS] {
        match self {
            Self::Interpret => [Cycles(0); WAYS],
            Self::Always(way) => [way.cycles(), Cycles(0)],
            Self::Branch { next, taken } => [next.cycles(), taken.cycles()],
            Self::Call { cycles, .. } => [*cycles, Cycles(0)],
            Self::CallRegister { cycles, .. }
            | Self::Return { cycles }
            | Self::Switch { cycles } => *cycles,
        }
    }

    /// The ways that lead to one place each, by counter.
    pub const fn ways(&self) -> [Option<Way>; WAYS] {
        match self {
            Self::Always(way) => [Some(*way), None],
            Self::Branch { next, taken } => [Some(*next), Some(*taken)],
            Self::Call {
                cycles, passage, ..
            } => [Some(Way::Function(*passage, *cycles)), None],
            Self::Interpret
            | Self::CallRegister { .. }
            | Self::Return { .. }
            | Self::Switch { .. } => [None; WAYS],
        }
    }
}

/// Returns true if an instruction lies in two words of memory.
pub fn straddles(address: u32, block: &Block) -> bool {
    let first = block.instructions.first().map(|first| first.length);
    address & 2 != 0 && first == Some(Length::Four)
}

/// The address of a target that is not known: no program has it, nor has it a line of a program.
const PROBE: u64 = 1 << 63;

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
    pub fn plan(mut self, targets: &BTreeSet<u32>) -> Plan {
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
            while let Some(address) = self.entries.addresses.get(entered).copied() {
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
        let executions = self.plan.executions(self.interpreter.counts());
        self.plan.flow = Flow::of(&self.plan, &executions);
        self.plan.held = Held::of(&self.plan, &executions);
        self.plan
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
        let Some((id, _)) = self.block(address) else {
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
                let Some(version) = self.version(target, pending) else {
                    return Way::Interpret;
                };
                if self.has_caches && !is_empty {
                    edge.otherwise = self.version(target, Pending::default());
                    if edge.otherwise.is_none() {
                        return Way::Interpret;
                    }
                }
                Way::Block(version, cycles)
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
