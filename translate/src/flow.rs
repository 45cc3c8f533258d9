//! Which ways out of blocks are counted. The others follow: a block is left as often as it is entered.
//!
//! The ways that are not counted are a spanning tree of the blocks, the heaviest one (D. Knuth and F. Stevenson, *Optimal measurement points
//! for program frequency counts*, BIT 13, 1973). All that is outside of the function is one node. Where code is entered from there, nothing is
//! counted.

use crate::plan::{Plan, VersionId, WAYS, Way};

/// A way out of a block: the block, and which of its ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayId {
    /// The block.
    pub from: VersionId,
    /// Its way, less than [`WAYS`].
    pub row: usize,
}

/// How often the ways of each block were taken.
pub type Executions = Vec<[u64; WAYS]>;

/// What a way that is not counted is computed of, by the balance of a block at one of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Derived {
    way: WayId,
    /// The block that is balanced.
    at: VersionId,
}

/// Which ways are not counted.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// In an order in which each can be computed.
    derived: Vec<Derived>,
    /// By block.
    is_derived: Vec<[bool; WAYS]>,
    /// By block: the ways that lead to it.
    entering: Vec<Vec<WayId>>,
}

/// The node of all that is outside.
const OUTSIDE: usize = 0;

const fn node(version: VersionId) -> usize {
    version.0.saturating_add(1)
}

impl Flow {
    /// Chooses ways of a plan. `executions` are those until now, by which the heaviest ways are found.
    pub fn of(plan: &Plan, executions: &Executions) -> Self {
        let count = plan.versions.len();
        let mut ways = Vec::new();
        let mut entering = vec![Vec::new(); count];
        for (from, version) in (0..).map(VersionId).zip(&plan.versions) {
            for (row, to) in version.leave.ways().into_iter().enumerate() {
                let way = WayId { from, row };
                let edge = version.cached.edges.get(row);
                if edge.is_some_and(|edge| !edge.others.is_empty()) {
                    continue;
                }
                let weight = executions.get(from.0).and_then(|ways| ways.get(row));
                let end = match to {
                    Some(Way::Block(to, _)) => {
                        let entering: Option<&mut Vec<_>> = entering.get_mut(to.0);
                        if let Some(entering) = entering {
                            entering.push(way);
                        }
                        node(to)
                    }
                    Some(Way::Function(..)) => OUTSIDE,
                    // The block has stopped.
                    Some(Way::Interpret) | None => continue,
                };
                ways.push((weight.copied().unwrap_or_default(), way, end));
            }
        }
        ways.sort_by_key(|(weight, ..)| std::cmp::Reverse(*weight));
        let mut sets = Sets::new(count.saturating_add(1));
        let mut tree: Vec<Vec<(usize, Option<WayId>)>> = vec![Vec::new(); count.saturating_add(1)];
        let mut join = |one: usize, other: usize, way: Option<WayId>| {
            if sets.join(one, other) {
                for (from, to) in [(one, other), (other, one)] {
                    if let Some(known) = tree.get_mut(from) {
                        known.push((to, way));
                    }
                }
            }
        };
        for entered in plan.entered() {
            join(OUTSIDE, node(entered), None);
        }
        for (_, way, end) in ways {
            join(node(way.from), end, Some(way));
        }
        let mut flow = Self {
            derived: Vec::new(),
            is_derived: vec![[false; WAYS]; count],
            entering,
        };
        flow.derive(&tree);
        flow
    }

    /// Orders the ways of a tree: those farthest from outside first.
    fn derive(&mut self, tree: &[Vec<(usize, Option<WayId>)>]) {
        let mut is_found = vec![false; tree.len()];
        let mut found = vec![OUTSIDE];
        let mut next = 0;
        while let Some(node) = found.get(next).copied() {
            next = next.saturating_add(1);
            if let Some(known) = is_found.get_mut(node) {
                *known = true;
            }
            for (to, way) in tree.get(node).into_iter().flatten() {
                if is_found.get(*to) != Some(&false) {
                    continue;
                }
                found.push(*to);
                if let (Some(way), Some(at)) = (*way, to.checked_sub(1)) {
                    let at = VersionId(at);
                    self.derived.push(Derived { way, at });
                    let known = self.is_derived.get_mut(way.from.0);
                    if let Some(known) = known.and_then(|ways| ways.get_mut(way.row)) {
                        *known = true;
                    }
                }
            }
        }
        self.derived.reverse();
    }

    /// Returns true if a way needs no counter.
    pub fn is_derived(&self, way: WayId) -> bool {
        let ways = self.is_derived.get(way.from.0);
        ways.and_then(|ways| ways.get(way.row)) == Some(&true)
    }

    /// Computes the executions of all ways. `taken` has those of the ways that are counted, and 0 for the others; `stopped` says how often a
    /// block was entered and not left by any of its ways.
    pub fn complete(&self, taken: &mut Executions, stopped: impl Fn(VersionId) -> u64) {
        for Derived { way, at } in &self.derived {
            let of = |way: &WayId| {
                let ways = taken.get(way.from.0);
                ways.and_then(|ways| ways.get(way.row)).copied()
            };
            let entering = self.entering.get(at.0).into_iter().flatten();
            let entered = entering.filter_map(of).fold(0, u64::wrapping_add);
            let ways = taken.get(at.0).copied().unwrap_or_default();
            let left = ways.into_iter().fold(stopped(*at), u64::wrapping_add);
            // The way itself is still 0 at both of its ends.
            let missing = match way.from == *at {
                true => entered.wrapping_sub(left),
                false => left.wrapping_sub(entered),
            };
            if let Some(known) = taken
                .get_mut(way.from.0)
                .and_then(|ways| ways.get_mut(way.row))
            {
                *known = missing;
            }
        }
    }
}

/// Sets of nodes that are joined.
struct Sets(Vec<usize>);

impl Sets {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn root(&mut self, mut node: usize) -> usize {
        while let Some(parent) = self.0.get(node).copied().filter(|parent| *parent != node) {
            let above = self.0.get(parent).copied().unwrap_or(parent);
            if let Some(known) = self.0.get_mut(node) {
                *known = above;
            }
            node = above;
        }
        node
    }

    /// Returns false if both nodes are in one set already.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        if one == other {
            return false;
        }
        if let Some(known) = self.0.get_mut(one) {
            *known = other;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use varid_machine::{Block, BlockId, Exit};
    use varid_processor::{Cycles, Pending};

    use super::*;
    use crate::plan::{Cached, CounterId, Leave, Version};

    fn plan(leaves: Vec<Leave>) -> Plan {
        let versions = leaves.into_iter().map(|leave| Version {
            id: BlockId(0),
            block: Block {
                start: 0,
                instructions: Vec::new(),
                end: 0,
                exit: Exit::Next,
                following: None,
            },
            pending: Pending::default(),
            cycles: Vec::new(),
            extras: Vec::new(),
            leave,
            counter: CounterId(0),
            cached: Cached::default(),
        });
        Plan {
            versions: versions.collect(),
            entries: vec![Some(VersionId(0))],
            ..Plan::default()
        }
    }

    fn to(version: usize) -> Way {
        Way::Block(VersionId(version), Cycles(0))
    }

    /// What is counted if blocks were left so often, and what follows.
    fn completed(flow: &Flow, all: &Executions, stopped: &[u64]) -> Executions {
        let mut taken = all.clone();
        for (from, ways) in (0..).map(VersionId).zip(&mut taken) {
            for (row, way) in ways.iter_mut().enumerate() {
                if flow.is_derived(WayId { from, row }) {
                    *way = 0;
                }
            }
        }
        flow.complete(&mut taken, |id| stopped[id.0]);
        taken
    }

    #[test]
    fn a_loop_with_two_sides_has_a_counter_on_each() {
        let plan = plan(vec![
            Leave::Branch {
                next: to(1),
                taken: to(2),
            },
            Leave::Always(to(3)),
            Leave::Always(to(3)),
            Leave::Branch {
                next: to(4),
                taken: to(0),
            },
            Leave::Return {
                cycles: [Cycles(0); WAYS],
            },
        ]);
        let all = vec![[4, 6], [4, 0], [6, 0], [1, 9], [1, 0]];
        let flow = Flow::of(&plan, &all);
        assert_eq!(completed(&flow, &all, &[0; 5]), all);
        let derived = [(0, 0), (0, 1), (3, 0), (3, 1)].map(|(from, row)| {
            let from = VersionId(from);
            flow.is_derived(WayId { from, row })
        });
        assert_eq!(derived, [true; 4]);
        // Another time it was entered twice, and stopped in the third block.
        let all = vec![[3, 5], [3, 0], [4, 0], [1, 6], [1, 0]];
        assert_eq!(completed(&flow, &all, &[0, 0, 1, 0, 0]), all);
    }

    #[test]
    fn a_block_that_leads_to_itself_is_counted() {
        let plan = plan(vec![Leave::Branch {
            next: Way::Interpret,
            taken: to(0),
        }]);
        let all = vec![[0, 7]];
        let flow = Flow::of(&plan, &all);
        assert_eq!(completed(&flow, &all, &[1]), all);
    }
}
