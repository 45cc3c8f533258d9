//! What each instruction of each context takes: a pipeline to which every instruction is issued.

use std::rc::Rc;

use varid_model::Address;
use varid_processor::{
    CacheLayouts, Cycles, Events, Operands, Pending, Pipeline, Processor, Slot, Unsupported,
};
use varid_riscv::{Instruction, Length};

use crate::{
    block::Block,
    counts::{BlockId, CellId},
    hart::Hart,
    observer::Observer,
};

/// What an instruction of a cell took in all its executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Cycles, with those until the next instruction could begin.
    pub cycles: Cycles,
    /// Misses of the instruction cache.
    pub icache_misses: u64,
    /// Misses of the data cache.
    pub dcache_misses: u64,
    /// Wrong predictions.
    pub mispredicted: u64,
}

/// How a part of a block was executed elsewhere. No instruction has taken more than the fewest cycles that it takes, but for its accesses.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere<'e> {
    /// What was pending at the block's beginning.
    pub pending: &'e Pending,
    /// The addresses of its accesses, in their order. Those that are missing are aligned, and hits.
    pub addresses: &'e [u32],
}

/// The time of a program on a processor.
#[derive(Debug)]
pub struct Timing<'p> {
    processor: &'p Processor,
    pipeline: Pipeline<'p>,
    /// By block. None: it was not executed yet.
    slots: Vec<Option<Rc<[Slot]>>>,
    /// By cell and instruction.
    costs: Vec<Vec<Cost>>,
    /// The block that is executed.
    current: (CellId, Rc<[Slot]>),
    /// The instruction before the next one.
    last: Option<(CellId, usize)>,
    events: Events,
}

impl<'p> Timing<'p> {
    /// Begins with an empty pipeline and empty caches.
    #[must_use]
    pub fn new(processor: &'p Processor) -> Self {
        let pipeline = Pipeline::new(processor);
        Self {
            processor,
            events: pipeline.events(),
            pipeline,
            slots: Vec::new(),
            costs: Vec::new(),
            current: (CellId(0), Rc::new([])),
            last: None,
        }
    }

    /// How often something happened that does not always happen.
    #[must_use]
    pub const fn events(&self) -> Events {
        self.pipeline.events()
    }

    /// What the instructions of a cell took, in their order. Empty: none was executed.
    #[must_use]
    pub fn costs(&self, cell: CellId) -> &[Cost] {
        let costs = self.costs.get(cell.0 as usize);
        costs.map(Vec::as_slice).unwrap_or_default()
    }

    fn cost(&mut self, (cell, index): (CellId, usize)) -> Option<&mut Cost> {
        self.costs.get_mut(cell.0 as usize)?.get_mut(index)
    }

    /// The processor.
    #[must_use]
    pub const fn processor(&self) -> &'p Processor {
        self.processor
    }

    /// Pays for the way to the block of a cell, which is executed elsewhere. Returns what is pending there.
    ///
    /// What instructions take has a history that [`Processor::history`] does not call other.
    ///
    /// # Errors
    ///
    /// The processor does not have one of its instructions.
    pub fn arrive(
        &mut self,
        cell: CellId,
        id: BlockId,
        block: &Block,
    ) -> Result<Pending, Unsupported> {
        if let Some(first) = self.slots(id, block)?.first() {
            let taken = self.pipeline.arrive_at(first);
            let before = self.last.take();
            if let Some(cost) = before.and_then(|last| self.cost(last)) {
                cost.cycles = cost.cycles.plus(taken);
            }
            let events = self.pipeline.events();
            if events != self.events {
                self.make_costs(cell, block);
                self.count_events(events, (cell, 0), before);
            }
        }
        Ok(self.pipeline.pending())
    }

    /// Pays for the way from a block to another one that was not fetched yet, where nothing is pending. Both are executed elsewhere.
    ///
    /// # Errors
    ///
    /// The processor does not have one of its instructions.
    pub fn fetch(
        &mut self,
        from: (CellId, &Block),
        to: (CellId, BlockId, &Block),
    ) -> Result<(), Unsupported> {
        let (cell, block) = from;
        self.make_costs(cell, block);
        self.last = Some((cell, block.instructions.len().saturating_sub(1)));
        self.pipeline.restart(&Pending::default());
        let (cell, id, block) = to;
        self.arrive(cell, id, block).map(|_| ())
    }

    /// Continues in the middle of a block that was executed elsewhere up to an instruction, and counts what those before have taken.
    ///
    /// # Errors
    ///
    /// The processor does not have one of its instructions.
    pub fn resume(
        &mut self,
        cell: CellId,
        (id, block): (BlockId, &Block),
        index: usize,
        elsewhere: &Elsewhere<'_>,
    ) -> Result<(), Unsupported> {
        self.enter(cell, id, block)?;
        self.pipeline.restart(elsewhere.pending);
        self.last = None;
        let (_, slots) = &self.current;
        let slots = Rc::clone(slots);
        let mut addresses = elsewhere.addresses.iter();
        for (index, slot) in slots.iter().enumerate().take(index) {
            let operands = slot.least_operands();
            let operands = match slot.is_access().then(|| addresses.next()).flatten() {
                Some(address) => slot.accessing(*address),
                None => operands,
            };
            self.issue((cell, index), slot, operands);
        }
        Ok(())
    }

    /// The caches.
    #[must_use]
    pub fn caches(&self) -> CacheLayouts {
        self.pipeline.caches()
    }

    /// The address of the word that was stored last, divided by 4.
    #[must_use]
    pub fn stored_word(&self) -> u32 {
        self.pipeline.stored_word()
    }

    /// Says which word was stored last, by code that was executed elsewhere.
    pub fn set_stored_word(&mut self, word: u32) {
        self.pipeline.set_stored_word(word);
    }

    /// Adds wrong predictions of an instruction of a cell that was executed elsewhere.
    pub fn add_mispredicted(&mut self, cell: CellId, block: &Block, index: usize, count: u64) {
        self.make_costs(cell, block);
        if let Some(cost) = self.cost((cell, index)) {
            cost.mispredicted = cost.mispredicted.saturating_add(count);
        }
        self.pipeline.count_mispredicted(count);
        self.events = self.pipeline.events();
    }

    /// Adds what an instruction of a cell has taken that was executed elsewhere.
    pub fn add(&mut self, cell: CellId, block: &Block, index: usize, cycles: Cycles) {
        self.make_costs(cell, block);
        if let Some(cost) = self.cost((cell, index)) {
            cost.cycles = cost.cycles.plus(cycles);
        }
    }

    /// Lets time pass.
    pub fn advance(&mut self, cycles: Cycles) {
        self.pipeline.advance(cycles);
    }

    fn make_costs(&mut self, cell: CellId, block: &Block) {
        let row = cell.0 as usize;
        if self.costs.get(row).is_none_or(Vec::is_empty) {
            if self.costs.len() <= row {
                self.costs.resize_with(row.saturating_add(1), Vec::new);
            }
            if let Some(costs) = self.costs.get_mut(row) {
                *costs = vec![Cost::default(); block.instructions.len()];
            }
        }
    }

    fn issue(&mut self, this: (CellId, usize), slot: &Slot, operands: Operands) {
        let issue = self.pipeline.issue(slot, operands);
        let before = self.last.replace(this);
        if let Some(cost) = self.cost(this) {
            cost.cycles = cost.cycles.plus(issue.own);
        }
        if issue.previous != Cycles(0)
            && let Some(cost) = self.cost(before.unwrap_or(this))
        {
            cost.cycles = cost.cycles.plus(issue.previous);
        }
        let events = self.pipeline.events();
        if events != self.events {
            self.count_events(events, this, before);
        }
    }

    /// The slots of a block's instructions.
    ///
    /// # Errors
    ///
    /// The processor does not have one of the instructions.
    pub fn slots(&mut self, id: BlockId, block: &Block) -> Result<Rc<[Slot]>, Unsupported> {
        let row = id.0 as usize;
        if let Some(Some(known)) = self.slots.get(row) {
            return Ok(Rc::clone(known));
        }
        let lengths = block.instructions.iter().map(|one| Some(one.length));
        let behind: Vec<Option<Length>> = lengths.skip(1).chain([block.following]).collect();
        let mut address = Address::new(block.start.into());
        let mut slots = Vec::with_capacity(block.instructions.len());
        for (instruction, following) in block.instructions.iter().zip(behind) {
            let slot = Slot::new(self.processor, instruction, address, following)?;
            slots.push(slot);
            address = instruction.next(address);
        }
        let slots: Rc<[Slot]> = slots.into();
        if self.slots.len() <= row {
            self.slots.resize(row.saturating_add(1), None);
        }
        if let Some(known) = self.slots.get_mut(row) {
            *known = Some(Rc::clone(&slots));
        }
        Ok(slots)
    }

    /// Counts what has happened since the last instruction. A wrong prediction is that of the branch before.
    #[cold]
    fn count_events(
        &mut self,
        new: Events,
        this: (CellId, usize),
        before: Option<(CellId, usize)>,
    ) {
        let more = |new: Option<u64>, old: Option<u64>| {
            let (new, old) = (new.unwrap_or_default(), old.unwrap_or_default());
            new.saturating_sub(old)
        };
        let old = self.events;
        let mispredicted = more(new.mispredicted, old.mispredicted);
        if let Some(cost) = self.cost(this) {
            let icache = more(new.icache_misses, old.icache_misses);
            let dcache = more(new.dcache_misses, old.dcache_misses);
            cost.icache_misses = cost.icache_misses.saturating_add(icache);
            cost.dcache_misses = cost.dcache_misses.saturating_add(dcache);
        }
        if let Some(cost) = before.and_then(|before| self.cost(before)) {
            cost.mispredicted = cost.mispredicted.saturating_add(mispredicted);
        }
        self.events = new;
    }
}

impl Observer for Timing<'_> {
    fn enter(&mut self, cell: CellId, id: BlockId, block: &Block) -> Result<(), Unsupported> {
        self.make_costs(cell, block);
        self.current = (cell, self.slots(id, block)?);
        Ok(())
    }

    fn instruction(&mut self, index: usize, instruction: &Instruction, hart: &Hart) {
        let (cell, slots) = &self.current;
        let this = (*cell, index);
        let Some(slot) = slots.get(index).copied() else {
            return;
        };
        let operands = Operands {
            first: hart.get(instruction.rs1),
            second: hart.get(instruction.rs2),
        };
        self.issue(this, &slot, operands);
    }

    fn cycles(&self) -> Cycles {
        self.pipeline.cycles()
    }
}
