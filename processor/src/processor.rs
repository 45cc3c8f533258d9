//! A processor: what its description says.

use crate::{
    cache::{Geometry, Replacement, Writes},
    class::{ByClass, Class},
    duration::Duration,
    predictor::Predictor,
};

/// A processor that executes instructions in order, one at a time or in a pipeline. `docs/formats/processor.md` describes its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    /// Its name: `ibex`.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// What its estimates were compared with. None: they were not.
    pub truth: Option<String>,
    /// The values of its parameters, by ascending name.
    pub parameters: Vec<(String, String)>,
    /// What instructions take.
    pub instructions: InstructionCosts,
    /// What jumps and taken branches take.
    pub transfers: TransferCosts,
    /// How branches are predicted.
    pub prediction: Prediction,
    /// What fetches take because of their alignment.
    pub fetch: FetchCosts,
    /// The instruction cache. None: memory answers as fast.
    pub icache: Option<InstructionCache>,
    /// The data cache. None: memory answers as fast.
    pub dcache: Option<DataCache>,
}

/// The times of instructions, in cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionCosts {
    /// How long it occupies the processor, or the stage that issues instructions. None: there is no such instruction.
    pub durations: ByClass<Option<Duration>>,
    /// How much later than that an instruction may begin that reads the result.
    pub result_delays: ByClass<u32>,
    /// How much earlier than others it needs its operands.
    pub operands_early: ByClass<u32>,
    /// How much of what a jump takes directly behind it passes while it is still executed.
    pub jump_overlap: ByClass<u32>,
    /// How much longer a load or store takes that crosses a boundary of four bytes.
    pub misaligned: u32,
}

impl InstructionCosts {
    /// The duration of a class. None: there is no such instruction.
    #[must_use]
    pub fn duration(&self, class: Class) -> Option<Duration> {
        self.durations.get(class).flatten()
    }
}

/// What transfers of control take in addition to the instruction, in cycles, if they are not predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferCosts {
    /// A branch that is taken.
    pub branch: u32,
    /// `jal`.
    pub jump: u32,
    /// `jalr`.
    pub jump_register: u32,
}

/// A predictor and what its predictions take in addition to the instruction, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    /// The predictor of branches.
    pub predictor: Predictor,
    /// A branch that is taken as predicted.
    pub branch: u32,
    /// `jal`, which is always predicted if branches are.
    pub jump: u32,
    /// A branch that is not taken although it was predicted to be.
    pub mispredicted: u32,
    /// Where branches are predicted.
    pub stage: PredictionStage,
}

/// The stage of a pipeline in which branches are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PredictionStage {
    /// The one that issues instructions.
    Issue,
    /// The one before it. While a branch waits there, its target is fetched.
    Fetch,
}

/// What fetches of instructions of four bytes take because they are not at a multiple of four, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FetchCosts {
    /// Such an instruction is the target of a jump or a taken branch.
    pub straddling_target: u32,
    /// Such an instruction follows the one before it.
    pub straddling_next: u32,
    /// Such an instruction follows a branch that is taken.
    pub straddling_behind_taken: u32,
}

/// What a miss of a cache takes, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissCosts {
    /// Until the first word is there.
    pub first_word: u32,
    /// For each further word of the line that the processor waits for.
    pub word: u32,
    /// Before and after that.
    pub overhead: u32,
}

impl MissCosts {
    /// The cycles of a miss in a cache with lines of this many bytes.
    #[must_use]
    pub const fn of_line(self, line: u32) -> u32 {
        let other_words = (line / 4).saturating_sub(1).saturating_mul(self.word);
        self.overhead
            .saturating_add(self.first_word)
            .saturating_add(other_words)
    }
}

/// An instruction cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionCache {
    /// Its size.
    pub geometry: Geometry,
    /// Which line is replaced.
    pub replacement: Replacement,
    /// What a miss takes.
    pub miss: MissCosts,
    /// How many bytes behind a transfer are fetched before it takes effect, if it was predicted and if it was not.
    pub wrong_path: WrongPath,
}

/// How many bytes a processor fetches that it does not execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrongPath {
    /// Behind a transfer that was predicted.
    pub predicted: u32,
    /// Behind one that was not, or wrongly.
    pub mispredicted: u32,
}

/// A data cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataCache {
    /// Its size.
    pub geometry: Geometry,
    /// Which line is replaced.
    pub replacement: Replacement,
    /// What stores do.
    pub writes: Writes,
    /// What a miss takes that fills a line.
    pub miss: MissCosts,
    /// What it takes to write a line back, in cycles.
    pub write_back: u32,
    /// How long memory is occupied by a store that is written through, in cycles. One more store can wait.
    pub write_cycles: u32,
    /// What a load takes that follows a store of the same word.
    pub load_after_store: LoadAfterStore,
}

/// What a load takes in addition if it reads the word that was stored shortly before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadAfterStore {
    /// The most cycles between both.
    pub within: u32,
    /// The cycles that it takes.
    pub cycles: u32,
}
