//! A pipeline in the middle of a program, without what was executed before.
//!
//! Where what an instruction takes depends on no history but the results that are still awaited, a [`Pending`] is all that an engine needs to
//! know to compute the times of a block once, and to continue somewhere else.

use varid_riscv::{REGISTERS, Register};

use super::Pipeline;
use crate::{
    class::Class,
    duration::{Cycles, Duration},
    predictor::Predictor,
    processor::{PredictionStage, Processor},
    slot::Slot,
};

/// The results that are not there yet, and what the last instruction hides of a jump behind it. Empty: the next instruction depends on nothing
/// before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Pending {
    /// By ascending register: in how many cycles an instruction can begin that reads it as early as any does.
    waits: Vec<(Register, u32)>,
    /// How much of what a jump takes has passed already, if it is the next instruction.
    overlap: u32,
    /// In how many cycles memory will have written the last store.
    writing: u32,
    /// For how many cycles loads of the word are repeated that was stored last.
    repeating: u32,
}

impl Pending {
    /// Returns true if the next instruction waits for nothing, whatever it is, and takes as long as behind any other.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.overlap == 0 && !self.has_stored()
    }

    /// Returns true if nothing is awaited but perhaps this register.
    #[must_use]
    pub fn is_only(&self, register: Option<Register>) -> bool {
        self.waits.iter().all(|(known, _)| Some(*known) == register) && !self.has_stored()
    }

    /// Returns true if the last store may delay accesses.
    const fn has_stored(&self) -> bool {
        self.writing > 0 || self.repeating > 0
    }

    /// The same without what the last store delays. None: it delays nothing, or nothing else is pending.
    #[must_use]
    pub fn without_store(&self) -> Option<Self> {
        let without = Self {
            writing: 0,
            repeating: 0,
            ..self.clone()
        };
        (self.has_stored() && !without.is_empty()).then_some(without)
    }

    /// Returns true if a load may be repeated, if it reads the word that was stored last.
    #[must_use]
    pub const fn may_repeat(&self) -> bool {
        self.repeating > 0
    }
}

/// What the time of an instruction depends on besides its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The instruction before it, and the results that are awaited.
    Results,
    /// Also what is in caches.
    Caches,
    /// More than that.
    Other,
}

impl Processor {
    /// Returns what the time of instructions depends on.
    #[must_use]
    pub fn history(&self) -> History {
        let is_static = match self.prediction.predictor {
            Predictor::None => true,
            // How long a branch has waited decides how much of a fetch at its target is hidden.
            Predictor::BackwardTaken => {
                self.prediction.stage == PredictionStage::Issue || self.fetch.straddling_target == 0
            }
            Predictor::Bimodal { .. } => false,
        };
        let has_caches = self.icache.is_some() || self.dcache.is_some();
        let mut classes = Class::ALL.into_iter();
        let is_simple = match has_caches {
            false => classes.all(|class| self.overlap_is_fixed(class)),
            // A miss would hide more of a jump.
            true => classes.all(|class| {
                self.instructions
                    .jump_overlap
                    .get(class)
                    .unwrap_or_default()
                    == 0
            }),
        };
        match (is_static && is_simple, has_caches) {
            (false, _) => History::Other,
            (true, false) => History::Results,
            (true, true) => History::Caches,
        }
    }

    /// Returns true if instructions of a class hide as much of a jump behind them whatever they take.
    fn overlap_is_fixed(&self, class: Class) -> bool {
        let overlap = self
            .instructions
            .jump_overlap
            .get(class)
            .unwrap_or_default();
        let duration = self.instructions.duration(class);
        let is_fixed = |duration: Duration| {
            let (fewest, most) = duration.bounds();
            fewest == most || fewest > overlap
        };
        overlap == 0 || duration.is_none_or(is_fixed)
    }

    /// How much earlier than others an instruction may need its operands.
    fn earliest(&self) -> u32 {
        let early = Class::ALL.map(|class| self.instructions.operands_early.get(class));
        early.into_iter().flatten().max().unwrap_or_default()
    }
}

impl Pipeline<'_> {
    /// Pays for the way to an instruction, which is issued next. Returns what it took.
    pub fn arrive_at(&mut self, slot: &Slot) -> Cycles {
        let cycles = self.arrive(slot);
        self.now = self.now.saturating_add(cycles);
        self.overlap = self.overlap.saturating_sub(cycles);
        self.last = None;
        Cycles(cycles)
    }

    /// The results that are awaited, and the overlap, behind [`Self::arrive_at`].
    #[must_use]
    pub fn pending(&self) -> Pending {
        let early = u64::from(self.processor.earliest());
        let registers = Register::all().zip(self.ready);
        let waits = registers.filter_map(|(register, ready)| {
            let wait = ready.saturating_add(early).saturating_sub(self.now);
            let wait = u32::try_from(wait).unwrap_or(u32::MAX);
            (wait > 0).then_some((register, wait))
        });
        let until = |time: u64| {
            let cycles = time.saturating_sub(self.now);
            u32::try_from(cycles).unwrap_or(u32::MAX)
        };
        let data = self.data.as_ref();
        Pending {
            waits: waits.collect(),
            overlap: u32::try_from(self.overlap).unwrap_or(u32::MAX),
            writing: data.map_or(0, |data| until(data.written_until)),
            repeating: data.map_or(0, |data| until(data.repeated_until)),
        }
    }

    /// Continues at an instruction for whose way [`Self::arrive_at`] has paid, while these results are awaited. The clock stays as it is.
    pub fn restart(&mut self, pending: &Pending) {
        let early = u64::from(self.processor.earliest());
        self.ready = [0; REGISTERS];
        for (register, wait) in &pending.waits {
            if let Some(ready) = self.ready.get_mut(register.index()) {
                let end = self.now.saturating_add((*wait).into());
                *ready = end.saturating_sub(early);
            }
        }
        self.overlap = pending.overlap.into();
        if let Some(data) = &mut self.data {
            data.written_until = self.now.saturating_add(pending.writing.into());
            data.repeated_until = self.now.saturating_add(pending.repeating.into());
        }
        self.last = None;
    }

    /// Lets time pass that was computed elsewhere.
    pub fn advance(&mut self, cycles: Cycles) {
        self.now = self.now.saturating_add(cycles.0);
        for ready in &mut self.ready {
            *ready = ready.saturating_add(cycles.0);
        }
        if let Some(data) = &mut self.data {
            data.written_until = data.written_until.saturating_add(cycles.0);
            data.repeated_until = data.repeated_until.saturating_add(cycles.0);
        }
    }
}
