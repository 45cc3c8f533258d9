//! What is translated of a function: its blocks, what they take, and where they lead.
//!
//! A block is planned once for each set of results that may be awaited at its beginning, because these decide what it takes. For most blocks
//! there is one.

use std::collections::HashMap;

use varid_machine::{Block, BlockId, Exit};
use varid_processor::{Cycles, Duration, Pending};
use varid_riscv::Length;

use crate::state::Passage;

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
}

impl Plan {
    /// The blocks at which the code is entered, or to which a jump to a register leads, or one of several ways.
    pub fn entered(&self) -> impl Iterator<Item = VersionId> {
        let targets = self.targets.iter().map(|(_, version)| *version);
        let versions = self.versions.iter();
        let parted = versions.flat_map(|version| {
            let ways = version.leave.ways().into_iter().zip(&version.cached.edges);
            ways.flat_map(|(way, edge)| match way {
                Some(Way::Block(to, _)) if !edge.others.is_empty() => {
                    let mut all = edge.others.clone();
                    all.push(to);
                    all
                }
                _ => Vec::new(),
            })
        });
        let entries = self.entries.iter().flatten().copied();
        entries.chain(targets).chain(parted)
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

    /// Returns the address that was added as this row.
    pub fn address(&self, row: usize) -> Option<u32> {
        self.addresses.get(row).copied()
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
    /// The blocks that are executed if less is pending there after all than was planned. None: nothing is in any case.
    pub others: Vec<VersionId>,
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
