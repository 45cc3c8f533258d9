//! Collects the counts of nodes while a file is read: the last value of each node, counter and place.

use super::{
    ids::{CounterId, NodeId},
    limits,
    parts::ContextCount,
};

/// With fewer counts, replaced values are not removed.
const FEW: usize = 1 << 12;

#[derive(Debug, Clone, Copy)]
struct Cell {
    node: NodeId,
    count: ContextCount,
}

impl Cell {
    const fn key(&self) -> (NodeId, CounterId, Option<u32>) {
        (self.node, self.count.counter, self.count.place)
    }
}

/// The counts read so far, in the order of the file. Replaced values are still in it until they are removed.
#[derive(Debug, Default)]
pub struct Cells {
    cells: Vec<Cell>,
    /// The number of cells at which replaced values are removed next.
    compact_at: usize,
}

/// The counts of all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeCounts {
    /// The counts by node, counter and place. Counts of 0 are omitted.
    counts: Vec<ContextCount>,
    /// The start of each node's counts, followed by the end of the last ones.
    starts: Vec<u32>,
}

impl Cells {
    /// Sets a value, which replaces an earlier one of the same node, counter and place.
    pub fn set(&mut self, node: NodeId, count: ContextCount) -> Result<(), &'static str> {
        if self.cells.len() >= self.compact_at.max(FEW) {
            self.compact();
            if self.cells.len() >= limits::CELLS {
                return Err("more counts than varid reads");
            }
            self.compact_at = self.cells.len().saturating_mul(2);
        }
        self.cells.push(Cell { node, count });
        Ok(())
    }

    /// Removes replaced values.
    fn compact(&mut self) {
        // The sort is stable, so equal keys stay in the order of the file.
        self.cells.sort_by_key(Cell::key);
        self.cells.dedup_by(|later, kept| {
            let is_same = later.key() == kept.key();
            if is_same {
                kept.count = later.count;
            }
            is_same
        });
    }

    /// Returns the counts of this number of nodes.
    pub fn finish(mut self, nodes: usize) -> NodeCounts {
        self.compact();
        self.cells.retain(|cell| cell.count.value != 0);
        let mut found = NodeCounts {
            counts: Vec::with_capacity(self.cells.len()),
            starts: Vec::with_capacity(nodes.saturating_add(1)),
        };
        for cell in &self.cells {
            found.start_until(cell.node.index().saturating_add(1));
            found.counts.push(cell.count);
        }
        found.start_until(nodes.saturating_add(1));
        found
    }
}

impl NodeCounts {
    /// Sets the start of all further nodes, until `started` nodes have one.
    fn start_until(&mut self, started: usize) {
        let at = u32::try_from(self.counts.len()).unwrap_or(u32::MAX);
        self.starts.resize(self.starts.len().max(started), at);
    }

    /// Returns the counts of a node, by counter and place.
    pub fn of(&self, node: NodeId) -> &[ContextCount] {
        let place = |index: usize| usize::try_from(*self.starts.get(index)?).ok();
        let range = || Some(place(node.index())?..place(node.index().checked_add(1)?)?);
        range()
            .and_then(|range| self.counts.get(range))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(counter: u32, place: Option<u32>, value: u64) -> ContextCount {
        ContextCount {
            counter: CounterId(counter),
            place,
            value,
        }
    }

    #[test]
    fn the_last_value_of_each_place_counts_and_zero_is_none() {
        let mut cells = Cells::default();
        let node = NodeId(1);
        for (counter, place, value) in [
            (1, None, 5),
            (0, Some(3), 7),
            (0, None, 9),
            (1, None, 6),
            (0, Some(3), 0),
            (0, Some(1), 2),
        ] {
            cells.set(node, count(counter, place, value)).unwrap();
        }
        let counts = cells.finish(3);
        let expected = [count(0, None, 9), count(0, Some(1), 2), count(1, None, 6)];
        assert_eq!(counts.of(node), expected);
        for other in [0, 2, 3, u32::MAX] {
            assert_eq!(counts.of(NodeId(other)), []);
        }
    }

    #[test]
    fn values_that_were_replaced_take_no_memory() {
        let mut cells = Cells::default();
        for round in 0..1_000u64 {
            for node in 0..100 {
                let value = round * 100 + u64::from(node);
                cells.set(NodeId(node), count(0, None, value)).unwrap();
            }
        }
        assert!(cells.cells.len() <= FEW + 1, "{}", cells.cells.len());
        let counts = cells.finish(100);
        for node in 0..100 {
            let value = 999 * 100 + u64::from(node);
            assert_eq!(counts.of(NodeId(node)), [count(0, None, value)]);
        }
    }
}
