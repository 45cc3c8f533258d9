//! From counters to what they stand for: executions and cycles by calling context and block.

use varid_machine::{ContextId, Counts, Timing};
use varid_processor::Cycles;

use crate::{
    plan::{CounterId, Version, VersionId, WAYS},
    planner::Planned,
};

/// Whether the instructions of counted blocks are part of the sum already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instructions {
    /// They are not.
    Add,
    /// They are.
    Known,
}

/// Adds what the counters of a context say to the counts, and sets them to 0. Returns the cycles.
pub fn settle(
    Planned { plan, flow, .. }: &Planned,
    context: ContextId,
    counters: &mut [u64],
    counts: &mut Counts,
    timing: &mut Timing<'_>,
    instructions: Instructions,
) -> Cycles {
    let mut take = |counter: CounterId| {
        let counter = counters.get_mut(counter.0);
        counter.map(std::mem::take).unwrap_or_default()
    };
    let rows = plan.versions.iter().map(|version| Row {
        ways: [0, 1].map(|way| take(version.counter.plus(way))),
        stopped: take(version.stopped()),
        reissued: [0, 1].map(|way| take(version.reissued().plus(way))),
        extras: version
            .extras
            .iter()
            .map(|extra| take(extra.counter))
            .collect(),
    });
    let rows: Vec<Row> = rows.collect();
    // Whoever has entered has left, and was counted on the way.
    let is_nothing = |row: &Row| row.ways == [0; WAYS] && row.stopped == 0;
    if rows.iter().all(is_nothing) {
        return Cycles(0);
    }
    let mut ways = rows.iter().map(|row| row.ways).collect();
    let stopped = |id: VersionId| rows.get(id.0).map_or(0, |row| row.stopped);
    flow.complete(&mut ways, stopped);
    let mut all = Cycles(0);
    for ((version, row), ways) in plan.versions.iter().zip(rows).zip(ways) {
        let row = Row { ways, ..row };
        let settled = settle_version(version, context, row, counts, timing, instructions);
        all = all.plus(settled);
    }
    all
}

/// The counters of a block.
struct Row {
    ways: [u64; WAYS],
    stopped: u64,
    reissued: [u64; WAYS],
    extras: Vec<u64>,
}

fn settle_version(
    version: &Version,
    context: ContextId,
    row: Row,
    counts: &mut Counts,
    timing: &mut Timing<'_>,
    instructions: Instructions,
) -> Cycles {
    let Row {
        ways,
        reissued,
        extras,
        ..
    } = row;
    let executions = ways.into_iter().fold(0_u64, u64::saturating_add);
    if executions == 0 && extras.iter().all(|extra| *extra == 0) {
        return Cycles(0);
    }
    let id = counts.cell_of(context, version.id);
    let block = &version.block;
    let is_branch = matches!(block.exit, varid_machine::Exit::Branch { .. });
    if let Some(cell) = counts.cell_mut(id) {
        let [_, taken] = ways;
        cell.executions = cell.executions.saturating_add(executions);
        cell.taken = cell.taken.saturating_add(if is_branch { taken } else { 0 });
    }
    if instructions == Instructions::Add {
        let count = (block.instructions.len() as u64).saturating_mul(executions);
        counts.instructions = counts.instructions.saturating_add(count);
    }
    let times = |cycles: Cycles, count: u64| Cycles(cycles.0.saturating_mul(count));
    let mut all = Cycles(0);
    let mut add = |index: usize, cycles: Cycles| {
        if cycles != Cycles(0) {
            timing.add(id, block, index, cycles);
            all = all.plus(cycles);
        }
    };
    // The pipeline itself has the time of the others.
    let ways: Vec<u64> = ways
        .into_iter()
        .zip(reissued)
        .map(|(all, reissued)| all.saturating_sub(reissued))
        .collect();
    let planned = ways
        .iter()
        .fold(0, |all: u64, way| all.saturating_add(*way));
    for (index, cycles) in version.cycles.iter().enumerate() {
        add(index, times(*cycles, planned));
    }
    let last = block.instructions.len().saturating_sub(1);
    for (cycles, count) in version.leave.cycles().into_iter().zip(&ways) {
        add(last, times(cycles, *count));
    }
    for (extra, cycles) in version.extras.iter().zip(extras) {
        add(extra.index, Cycles(cycles));
    }
    for (edge, count) in version.cached.edges.iter().zip(ways) {
        if edge.is_mispredicted {
            timing.add_mispredicted(id, block, last, count);
        }
    }
    all
}
