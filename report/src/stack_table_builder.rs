//! Builds a table of stacks.

use std::hash::BuildHasher;

use hashbrown::hash_table::{Entry, HashTable};

use crate::{
    fast_hash::FastHash,
    frames::FrameId,
    stacks::{NONE, StackId, StackTable, place},
};

/// Builds a stack table.
///
/// Most stacks have few children, which form a linked list. As the nodes of a new callchain are added one after the
/// other, the first child mostly follows its parent in memory. Thus, a lookup of a callchain needs no hashing and
/// touches little memory.
#[derive(Debug, Default)]
pub(crate) struct StackTableBuilder {
    nodes: Vec<Node>,
    /// Children that are not in the list of their parent, by parent and frame.
    further_children: HashTable<u32>,
    hash: FastHash,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// [`NONE`] for outermost frames.
    parent: u32,
    frame: FrameId,
    /// First child and next sibling. [`NONE`] at the end of a list.
    first_child: u32,
    next_sibling: u32,
}

/// The most children in a list. Further children are in the hash table.
const LISTED: usize = 4;

impl StackTableBuilder {
    /// Returns the stack with these frames, from the outermost to the leaf. None if there are no frames.
    #[cfg(test)]
    pub fn intern(&mut self, frames: impl IntoIterator<Item = FrameId>) -> Option<StackId> {
        let child = |stack, frame| self.child(stack, frame);
        frames.into_iter().fold(None, child)
    }

    /// Returns the child of a stack with this frame. Adds it if it does not exist.
    pub fn child(&mut self, parent: Option<StackId>, frame: FrameId) -> Option<StackId> {
        let Some(parent) = parent else {
            return self.further_child(NONE, frame);
        };
        let first = self.nodes.get(parent.index())?.first_child;
        let (mut child, mut last) = (first, NONE);
        for _ in 0..LISTED {
            let Some(node) = self.node(child) else {
                let made = self.push(parent.number(), frame);
                if let Some(made) = made {
                    self.link(parent, last, made);
                }
                return made.or(Some(parent));
            };
            if node.frame == frame {
                return Some(StackId::from_number(child));
            }
            (last, child) = (child, node.next_sibling);
        }
        self.further_child(parent.number(), frame)
    }

    /// Returns the child of a stack (or of [`NONE`]) that is not in a list.
    fn further_child(&mut self, parent: u32, frame: FrameId) -> Option<StackId> {
        let key = (parent, frame);
        let (nodes, hash) = (&self.nodes, &self.hash);
        let key_of = |number: &u32| {
            let node = place(*number).and_then(|place| nodes.get(place));
            node.map(|node| (node.parent, node.frame))
        };
        let rehash = |number: &u32| hash.hash_one(key_of(number).unwrap_or((NONE, FrameId(NONE))));
        let next = next_number(nodes);
        let is_it = |number: &u32| key_of(number) == Some(key);
        let entry = self
            .further_children
            .entry(hash.hash_one(key), is_it, rehash);
        match (entry, next) {
            (Entry::Occupied(entry), _) => Some(StackId::from_number(*entry.get())),
            (Entry::Vacant(entry), Some(next)) => {
                entry.insert(next);
                self.push(parent, frame)
            }
            (Entry::Vacant(_), None) => (parent != NONE).then_some(StackId::from_number(parent)),
        }
    }

    /// Adds a node. None if the indices are exhausted; the frame is then merged into its parent. This cannot happen in
    /// practice, as a recording has far more bytes than nodes.
    fn push(&mut self, parent: u32, frame: FrameId) -> Option<StackId> {
        let number = next_number(&self.nodes)?;
        self.nodes.push(Node {
            parent,
            frame,
            first_child: NONE,
            next_sibling: NONE,
        });
        Some(StackId::from_number(number))
    }

    /// Links a child after the last child of its parent, or as the first one.
    fn link(&mut self, parent: StackId, last: u32, child: StackId) {
        let last = place(last).and_then(|place| self.nodes.get_mut(place));
        if let Some(last) = last {
            last.next_sibling = child.number();
        } else if let Some(parent) = self.nodes.get_mut(parent.index()) {
            parent.first_child = child.number();
        }
    }

    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(place(number)?)
    }

    /// Returns the table and frees the lookup structures.
    pub fn finish(self) -> StackTable {
        StackTable::new(self.nodes.iter().map(|node| (node.parent, node.frame)))
    }
}

fn next_number(nodes: &[Node]) -> Option<u32> {
    let next = u32::try_from(nodes.len()).ok();
    next.filter(|next| *next != NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_children_is_found() {
        let mut builder = StackTableBuilder::default();
        let frames = 0..100;
        let root = builder.intern([FrameId(7)]);
        let children: Vec<_> = frames
            .clone()
            .map(|f| builder.child(root, FrameId(f)))
            .collect();
        let found: Vec<_> = frames.map(|f| builder.child(root, FrameId(f))).collect();
        assert_eq!(children, found);
        let table = builder.finish();
        assert_eq!(table.len(), 101);
        assert!(
            children
                .iter()
                .all(|child| table.parent(child.unwrap()) == root)
        );
    }
}
