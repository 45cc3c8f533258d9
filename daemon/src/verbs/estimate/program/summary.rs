//! What `varid estimate` prints of a program.

use crate::cli::SummaryFormat;
use crate::output;
use serde::Serialize;
use varid_machine::{Counts, Exit, Observer, Timing};
use varid_processor::Processor;
use varid_riscv::Register;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Exit(i32),
    /// After this many instructions, which was the limit.
    Limit(u64),
}

/// The result, for programs. What was not simulated is None.
#[derive(Debug, Serialize)]
pub struct Summary {
    target: String,
    instructions: u64,
    cycles: u64,
    loads: u64,
    stores: u64,
    /// Of the loads and stores those through the stack pointer.
    stack_accesses: u64,
    branches: u64,
    taken: u64,
    icache_misses: Option<u64>,
    dcache_misses: Option<u64>,
    mispredicted: Option<u64>,
    /// The exit status. None: the limit was reached first.
    status: Option<i32>,
}

impl Summary {
    pub fn new(processor: &Processor, counts: &Counts, timing: &Timing<'_>, end: End) -> Self {
        let events = timing.events();
        let mut summary = Self {
            target: processor.name.clone(),
            instructions: counts.instructions,
            cycles: timing.cycles().0,
            loads: 0,
            stores: 0,
            stack_accesses: 0,
            branches: 0,
            taken: 0,
            icache_misses: events.icache_misses,
            dcache_misses: events.dcache_misses,
            mispredicted: events.mispredicted,
            status: match end {
                // As the parent of a process sees it.
                End::Exit(status) => Some(status & 0xff),
                End::Limit(_) => None,
            },
        };
        for cell in &counts.cells {
            let Some(block) = counts.block(cell.block) else {
                continue;
            };
            let executed = |matching: usize| cell.executions.saturating_mul(matching as u64);
            let (mut loads, mut stores, mut stack) = (0_usize, 0_usize, 0_usize);
            for instruction in &block.instructions {
                let (is_load, is_store) = (instruction.is_load(), instruction.is_store());
                loads = loads.saturating_add(is_load.into());
                stores = stores.saturating_add(is_store.into());
                let is_stack_access = (is_load || is_store) && instruction.rs1 == Register::SP;
                stack = stack.saturating_add(is_stack_access.into());
            }
            summary.loads = summary.loads.saturating_add(executed(loads));
            summary.stores = summary.stores.saturating_add(executed(stores));
            summary.stack_accesses = summary.stack_accesses.saturating_add(executed(stack));
            if matches!(block.exit, Exit::Branch { .. }) {
                summary.branches = summary.branches.saturating_add(cell.executions);
                summary.taken = summary.taken.saturating_add(cell.taken);
            }
        }
        summary
    }

    pub fn print(&self, format: SummaryFormat) -> anyhow::Result<()> {
        match format {
            SummaryFormat::Json => output::json(self),
            SummaryFormat::Text => output::text(&self.text()),
        }
    }

    fn text(&self) -> String {
        let Self {
            target,
            instructions,
            cycles,
            loads,
            stores,
            stack_accesses,
            branches,
            taken,
            ..
        } = self;
        let each = *cycles as f64 / (*instructions).max(1) as f64;
        let mut text = format!(
            "{target}: {cycles} cycles for {instructions} instructions ({each:.2} each)\n\
             {loads} loads and {stores} stores, {stack_accesses} of them through the stack pointer; \
             {taken} of {branches} branches taken\n"
        );
        let simulated = [
            ("misses of the instruction cache", self.icache_misses),
            ("misses of the data cache", self.dcache_misses),
            ("wrong predictions", self.mispredicted),
        ];
        for (what, count) in simulated {
            if let Some(count) = count {
                text += &format!("{count} {what}\n");
            }
        }
        match self.status {
            Some(0) => {}
            Some(status) => text += &format!("note: the program's exit status is {status}\n"),
            None => text += "note: --limit has ended the program\n",
        }
        text
    }
}
