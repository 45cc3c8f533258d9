//! Which counters are in registers of the host while a loop runs.
//!
//! A counter in memory that is counted again at once waits for its last value to be stored: some cycles in each round of a short loop.

use crate::{
    flow::{Executions, Flow, WayId},
    loops::{LoopId, innermost},
    plan::{CounterId, Leave, Plan, Version, VersionId, Way},
};

/// The most counters of a loop. The program's own registers need some, too.
const MAX_HELD: usize = 4;

/// The loops of a function, and the counters that are held in them.
#[derive(Debug, Default)]
pub struct Held {
    /// By block.
    loops: Vec<Option<LoopId>>,
    /// The counters of each loop.
    pub counters: Vec<(LoopId, CounterId)>,
}

impl Held {
    /// Finds the loops of a plan, and their most frequent counters.
    pub fn of(plan: &Plan, flow: &Flow, executions: &Executions) -> Self {
        let successors: Vec<_> = plan.versions.iter().map(successors).collect();
        let loops = innermost(&successors);
        let mut found = Vec::new();
        for (from, version) in (0..).map(VersionId).zip(&plan.versions) {
            let Some(Some(id)) = loops.get(from.0).copied() else {
                continue;
            };
            let executions = executions.get(from.0).copied().unwrap_or_default();
            for (row, way) in version.leave.ways().into_iter().enumerate() {
                let Some(Way::Block(to, _)) = way else {
                    continue;
                };
                let stays = loops.get(to.0) == Some(&Some(id));
                if stays && !flow.is_derived(WayId { from, row }) {
                    let weight = executions.get(row).copied().unwrap_or_default();
                    found.push((weight, id, version.counter.plus(row)));
                }
            }
            let all = executions.into_iter().fold(0, u64::saturating_add);
            let extras = version.extras.iter();
            found.extend(extras.map(|extra| (all, id, extra.counter)));
        }
        found.sort_by_key(|(weight, ..)| std::cmp::Reverse(*weight));
        let mut counters: Vec<(LoopId, CounterId)> = Vec::new();
        for (_, id, counter) in found {
            if counters.iter().filter(|(known, _)| *known == id).count() < MAX_HELD {
                counters.push((id, counter));
            }
        }
        Self { loops, counters }
    }

    /// The loop that a block is in.
    pub fn loop_of(&self, version: VersionId) -> Option<LoopId> {
        self.loops.get(version.0).copied().flatten()
    }
}

/// Where loops may go on: there is nothing to be written back at the ways to blocks.
fn successors(version: &Version) -> Vec<usize> {
    match &version.leave {
        Leave::Always(_) | Leave::Branch { .. } => {}
        _ => return Vec::new(),
    }
    let ways = version.leave.ways().into_iter().flatten();
    let blocks = ways.filter_map(|way| match way {
        Way::Block(to, _) => Some(to.0),
        Way::Function(..) | Way::Interpret => None,
    });
    blocks.collect()
}
