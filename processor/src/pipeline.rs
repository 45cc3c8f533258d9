//! The pipeline while a program runs: what each instruction adds to the time.

use varid_model::Address;
use varid_riscv::REGISTERS;

use crate::{
    cache::{Access, Cache, Geometry, Replacement, Writes},
    duration::{Cycles, Operands},
    predictor::{Branch, Direction, Predictor, PredictorState},
    processor::{DataCache, InstructionCache, PredictionStage, Processor},
    slot::{AccessKind, Alignment, DataAccess, Slot, Transfer},
};

/// The time of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Issue {
    /// What passes between the instruction before it and this one, because of a jump or a fetch. The one before it pays for that.
    pub previous: Cycles,
    /// What passes while this one holds the stage that issues instructions.
    pub own: Cycles,
}

/// How often something happened that does not always happen. None: it is not simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Events {
    /// Accesses that missed the instruction cache.
    pub icache_misses: Option<u64>,
    /// Loads, and stores that fill lines, that missed the data cache.
    pub dcache_misses: Option<u64>,
    /// Branches that did not go as predicted.
    pub mispredicted: Option<u64>,
}

/// A processor that executes a program.
#[derive(Debug, Clone)]
pub struct Pipeline<'p> {
    processor: &'p Processor,
    /// The cycles since the first instruction.
    now: u64,
    /// When each register can be read.
    ready: [u64; REGISTERS],
    /// The instruction before the next one.
    last: Option<Slot>,
    /// The cycles of the last two instructions, the last one first.
    own: [u64; 2],
    /// How much of what a jump takes can pass while the last instruction is executed.
    overlap: u64,
    /// How much of what the last instruction takes, if it is a jump, has passed while the one before it was executed.
    overlapped: u64,
    predictor: PredictorState,
    fetches: Option<Fetches>,
    data: Option<Data>,
    events: Events,
}

#[derive(Debug, Clone)]
struct Fetches {
    parameters: InstructionCache,
    /// None: each access is a hit.
    cache: Option<Cache>,
    /// The line that was fetched last.
    line: Option<u64>,
    /// The lines that were fetched without a cache.
    fetched: Vec<u64>,
}

#[derive(Debug, Clone)]
struct Data {
    parameters: DataCache,
    /// None: each access is a hit.
    cache: Option<Cache>,
    /// The address of the word that was stored last, divided by 4.
    stored_word: u32,
    /// Loads of this word that begin before that time are repeated.
    repeated_until: u64,
    /// When memory will have written the last store.
    written_until: u64,
    /// Whether the last load is repeated if it reads that word.
    may_repeat: bool,
}

/// What is accessed of caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caches {
    /// What was accessed before is in them.
    Simulated,
    /// All is in them.
    Full,
}

/// How control came from one instruction to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    /// The next one stands behind it.
    Sequential,
    /// It transferred control.
    Transferred,
}

/// What a transfer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Taken {
    cycles: u64,
    fetch: Restart,
}

/// Whether fetching begins anew at another address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    /// It goes on.
    No,
    /// It began while the transfer waited to be issued.
    Ahead,
    /// It begins when the transfer is issued.
    AtIssue,
}

impl Taken {
    const NOTHING: Self = Self {
        cycles: 0,
        fetch: Restart::No,
    };
}

impl<'p> Pipeline<'p> {
    /// Begins with empty caches.
    #[must_use]
    pub fn new(processor: &'p Processor) -> Self {
        Self::with(processor, Caches::Simulated)
    }

    /// Begins with caches that have all that is accessed, for a program in which no load reads the word that was stored last.
    #[must_use]
    pub fn of_hits(processor: &'p Processor) -> Self {
        Self::with(processor, Caches::Full)
    }

    fn with(processor: &'p Processor, caches: Caches) -> Self {
        let cache = |geometry: Geometry, replacement: Replacement| match caches {
            Caches::Simulated => Some(Cache::new(geometry, replacement)),
            Caches::Full => None,
        };
        let fetches = processor.icache.map(|parameters| Fetches {
            parameters,
            cache: cache(parameters.geometry, parameters.replacement),
            line: None,
            fetched: Vec::new(),
        });
        let data = processor.dcache.map(|parameters| Data {
            parameters,
            cache: cache(parameters.geometry, parameters.replacement),
            stored_word: u32::MAX,
            repeated_until: 0,
            written_until: 0,
            may_repeat: false,
        });
        Self {
            processor,
            now: 0,
            ready: [0; REGISTERS],
            last: None,
            own: [1; 2],
            overlap: 0,
            overlapped: 0,
            predictor: PredictorState::new(processor.prediction.predictor),
            events: Events {
                icache_misses: fetches.is_some().then_some(0),
                dcache_misses: data.is_some().then_some(0),
                mispredicted: (processor.prediction.predictor != Predictor::None).then_some(0),
            },
            fetches,
            data,
        }
    }

    /// The cycles since the first instruction began.
    #[must_use]
    pub const fn cycles(&self) -> Cycles {
        Cycles(self.now)
    }

    /// What happened.
    #[must_use]
    pub const fn events(&self) -> Events {
        self.events
    }

    /// Executes an instruction.
    pub fn issue(&mut self, slot: &Slot, operands: Operands) -> Issue {
        let before = self.arrive(slot);
        self.now = self.now.saturating_add(before);
        let begin = self.begin(slot);
        let mut end = begin.saturating_add(slot.cycles(operands).into());
        if let Some(access) = slot.access {
            end = end.saturating_add(self.access(access, operands, begin));
        }
        if let Some(register) = slot.writes
            && let Some(ready) = self.ready.get_mut(register.index())
        {
            *ready = end.saturating_add(slot.result_delay.into());
        }
        // A jump that waits for operands fetches its target only then.
        self.overlapped = match begin == self.now {
            true => self.overlap.saturating_sub(before),
            false => 0,
        };
        let more = end.saturating_sub(begin).saturating_sub(1);
        self.overlap = more.min(slot.jump_overlap.into());
        let own = end.saturating_sub(self.now);
        self.now = end;
        self.last = Some(*slot);
        let [last, _] = self.own;
        self.own = [own, last];
        Issue {
            previous: Cycles(before),
            own: Cycles(own),
        }
    }

    /// When an instruction can begin: not before its operands are there.
    fn begin(&self, slot: &Slot) -> u64 {
        let early = u64::from(slot.operands_early);
        let reads = slot.reads.iter().flatten();
        let ready = reads.filter_map(|register| self.ready.get(register.index()));
        let needed = ready.map(|ready| ready.saturating_add(early));
        needed.max().unwrap_or_default().max(self.now)
    }

    /// The cycles between the instruction before and this one.
    fn arrive(&mut self, slot: &Slot) -> u64 {
        let Some(last) = self.last else {
            return self.fetch(slot);
        };
        let passage = match last.transfer {
            Some(Transfer::Jump | Transfer::JumpRegister) => Passage::Transferred,
            _ if slot.address == last.next() => Passage::Sequential,
            _ => Passage::Transferred,
        };
        let fetch = &self.processor.fetch;
        let behind = match (last.transfer, passage, last.next_alignment) {
            (Some(Transfer::Branch(_)), Passage::Transferred, Alignment::Straddling) => {
                fetch.straddling_behind_taken
            }
            _ => 0,
        };
        let transfer = self.transfer(&last, passage);
        let straddling = match (slot.alignment, transfer.fetch) {
            (Alignment::Whole, _) => 0,
            (Alignment::Straddling, Restart::No) => fetch.straddling_next.into(),
            (Alignment::Straddling, Restart::AtIssue) => fetch.straddling_target.into(),
            (Alignment::Straddling, Restart::Ahead) => {
                let hidden = self.waited().saturating_add(transfer.cycles);
                u64::from(fetch.straddling_target).saturating_sub(hidden)
            }
        };
        let cycles = transfer
            .cycles
            .saturating_add(straddling)
            .saturating_add(behind.into());
        let overlapped = match last.transfer {
            Some(Transfer::Jump | Transfer::JumpRegister) => self.overlapped,
            Some(Transfer::Branch(_)) | None => 0,
        };
        let cycles = cycles.saturating_sub(overlapped);
        cycles.saturating_add(self.fetch(slot))
    }

    /// How long the last instruction has waited before and while it was issued, if the pipeline was full.
    fn waited(&self) -> u64 {
        let [last, before] = self.own;
        last.saturating_add(before).saturating_sub(2)
    }

    /// What the transfer by an instruction takes.
    fn transfer(&mut self, last: &Slot, passage: Passage) -> Taken {
        let costs = self.processor.transfers;
        let prediction = self.processor.prediction;
        let has_predictor = prediction.predictor != Predictor::None;
        let (cycles, is_predicted) = match last.transfer {
            None => return Taken::NOTHING,
            Some(Transfer::JumpRegister) => (costs.jump_register, false),
            Some(Transfer::Jump) if has_predictor => (prediction.jump, true),
            Some(Transfer::Jump) => (costs.jump, false),
            Some(Transfer::Branch(offset)) => {
                let branch = Branch {
                    address: last.address,
                    offset,
                };
                let went = match passage {
                    Passage::Transferred => Direction::Taken,
                    Passage::Sequential => Direction::NotTaken,
                };
                let predicted = self.predictor.predict(branch);
                self.predictor.update(branch, went);
                let is_predicted = predicted == went;
                if !is_predicted && let Some(count) = &mut self.events.mispredicted {
                    *count = count.saturating_add(1);
                }
                let cycles = match (predicted, went) {
                    (Direction::NotTaken, Direction::NotTaken) => return Taken::NOTHING,
                    (Direction::NotTaken, Direction::Taken) => costs.branch,
                    (Direction::Taken, Direction::Taken) => prediction.branch,
                    (Direction::Taken, Direction::NotTaken) => prediction.mispredicted,
                };
                (cycles, is_predicted)
            }
        };
        let ahead = self.run_ahead(last, is_predicted);
        Taken {
            cycles: u64::from(cycles).saturating_add(ahead),
            fetch: match prediction.stage {
                PredictionStage::Fetch if is_predicted => Restart::Ahead,
                _ => Restart::AtIssue,
            },
        }
    }

    /// The cycles until an instruction is there.
    fn fetch(&mut self, slot: &Slot) -> u64 {
        self.fetch_bytes(slot.address, slot.length)
    }

    /// The cycles in which the code behind a transfer is fetched, which is not executed.
    fn run_ahead(&mut self, last: &Slot, is_predicted: bool) -> u64 {
        let wrong_path = match &self.fetches {
            Some(fetches) => fetches.parameters.wrong_path,
            None => return 0,
        };
        let bytes = match is_predicted {
            true => wrong_path.predicted,
            false => wrong_path.mispredicted,
        };
        self.fetch_bytes(last.next(), bytes)
    }

    /// The cycles until bytes of code are there, which are on no more than two lines.
    fn fetch_bytes(&mut self, address: Address, bytes: u32) -> u64 {
        let (Some(fetches), Some(last)) = (&mut self.fetches, bytes.checked_sub(1)) else {
            return 0;
        };
        let end = address.wrapping_add(last.into());
        let misses = fetches.fetch(address).saturating_add(fetches.fetch(end));
        if let Some(count) = &mut self.events.icache_misses {
            *count = count.saturating_add(misses);
        }
        let parameters = fetches.parameters;
        let miss = parameters.miss.of_line(parameters.geometry.line);
        misses.saturating_mul(miss.into())
    }

    /// The cycles that an access of memory adds, which begins at this time.
    fn access(&mut self, access: DataAccess, operands: Operands, begin: u64) -> u64 {
        let address = access.address(operands.first);
        let misaligned = match access.is_misaligned(address) {
            true => u64::from(self.processor.instructions.misaligned),
            false => 0,
        };
        let Some(data) = &mut self.data else {
            return misaligned;
        };
        let (found, waits) = match access.kind {
            AccessKind::Load => data.load(address, begin),
            AccessKind::Store => data.store(address, begin),
        };
        let fills = access.kind == AccessKind::Load || data.parameters.writes == Writes::Back;
        if fills
            && found.is_miss()
            && let Some(count) = &mut self.events.dcache_misses
        {
            *count = count.saturating_add(1);
        }
        let refill = match found {
            Access::Hit => 0,
            _ if !fills => 0,
            Access::Miss => data.miss(),
            Access::MissAndWriteBack => data
                .miss()
                .saturating_add(data.parameters.write_back.into()),
        };
        misaligned.saturating_add(waits).saturating_add(refill)
    }
}

impl Data {
    /// The cycles of a miss.
    fn miss(&self) -> u64 {
        let DataCache { miss, geometry, .. } = self.parameters;
        miss.of_line(geometry.line).into()
    }

    /// Loads at a time. Returns also how long the load waits besides a refill.
    fn load(&mut self, address: u32, begin: u64) -> (Access, u64) {
        let at = Address::new(address.into());
        let found = self
            .cache
            .as_mut()
            .map_or(Access::Hit, |cache| cache.read(at));
        self.may_repeat = begin < self.repeated_until;
        // Without a cache, addresses are not those of a program either.
        let reads_stored = self.cache.is_some() && self.stored_word == address >> 2;
        let waits = match self.may_repeat && reads_stored {
            true => self.parameters.load_after_store.cycles.into(),
            false => 0,
        };
        (found, waits)
    }

    /// Stores at a time. Returns also how long the store waits for the one before.
    fn store(&mut self, address: u32, begin: u64) -> (Access, u64) {
        let at = Address::new(address.into());
        let writes = self.parameters.writes;
        let cache = self.cache.as_mut();
        let found = cache.map_or(Access::Hit, |cache| cache.write(at, writes));
        let busy = u64::from(self.parameters.write_cycles);
        let mut enters = begin;
        if busy > 1 {
            // One store waits while memory writes another one.
            let free = self.written_until.saturating_add(1).saturating_sub(busy);
            enters = free.max(begin);
            let written = self.written_until.max(enters);
            self.written_until = written.saturating_add(busy);
        }
        let repeat = self.parameters.load_after_store;
        if repeat.cycles > 0 {
            let last = enters.saturating_add(repeat.within.into());
            self.repeated_until = last.saturating_add(1);
            self.stored_word = address >> 2;
        }
        (found, enters.saturating_sub(begin))
    }
}

impl Fetches {
    /// Fetches the line of an address. Returns the number of misses.
    fn fetch(&mut self, address: Address) -> u64 {
        let line = self.parameters.geometry.line_of(address);
        if self.line == Some(line) {
            return 0;
        }
        self.line = Some(line);
        match &mut self.cache {
            Some(cache) => u64::from(cache.read(address).is_miss()),
            None => {
                self.fetched.push(line);
                0
            }
        }
    }
}

mod pending;
mod planned;

pub use pending::{History, Pending};
pub use planned::{CacheLayouts, Stores};

#[cfg(test)]
mod tests;
