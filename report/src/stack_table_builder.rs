//! Builds a table of stacks.

use std::hash::BuildHasher;

use hashbrown::hash_table::{Entry, HashTable};

use crate::{
    fast_hash::FastHash,
    frames::FrameId,
    stacks::{StackId, StackTable},
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
    further_children: HashTable<StackId>,
    hash: FastHash,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// None for outermost frames.
    parent: Option<StackId>,
    frame: FrameId,
    first_child: Option<StackId>,
    next_sibling: Option<StackId>,
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
            return self.further_child(None, frame);
        };
        let first = self.nodes.get(parent.index())?.first_child;
        let (mut child, mut last) = (first, None);
        for _ in 0..LISTED {
            let Some((id, node)) = child.and_then(|id| Some((id, self.nodes.get(id.index())?)))
            else {
                let made = self.push(Some(parent), frame);
                if let Some(made) = made {
                    self.link(parent, last, made);
                }
                return made.or(Some(parent));
            };
            if node.frame == frame {
                return Some(id);
            }
            (last, child) = (child, node.next_sibling);
        }
        self.further_child(Some(parent), frame)
    }

    /// Returns the child of a stack, or the outermost frame, that is not in a list.
    fn further_child(&mut self, parent: Option<StackId>, frame: FrameId) -> Option<StackId> {
        let key = (parent, frame);
        let (nodes, hash) = (&self.nodes, &self.hash);
        let key_of = |id: &StackId| {
            let node = nodes.get(id.index());
            node.map(|node| (node.parent, node.frame))
        };
        let rehash = |id: &StackId| key_of(id).map_or(0, |key| hash.hash_one(key));
        let next = StackId::at(nodes.len());
        let is_it = |id: &StackId| key_of(id) == Some(key);
        let entry = self
            .further_children
            .entry(hash.hash_one(key), is_it, rehash);
        match (entry, next) {
            (Entry::Occupied(entry), _) => Some(*entry.get()),
            (Entry::Vacant(entry), Some(next)) => {
                entry.insert(next);
                self.push(parent, frame)
            }
            (Entry::Vacant(_), None) => parent,
        }
    }

    /// Adds a node. None if the indices are exhausted; the frame is then merged into its parent. This cannot happen in
    /// practice, as a recording has far more bytes than nodes.
    fn push(&mut self, parent: Option<StackId>, frame: FrameId) -> Option<StackId> {
        let id = StackId::at(self.nodes.len())?;
        self.nodes.push(Node {
            parent,
            frame,
            first_child: None,
            next_sibling: None,
        });
        Some(id)
    }

    /// Links a child after the last child of its parent, or as the first one.
    fn link(&mut self, parent: StackId, last: Option<StackId>, child: StackId) {
        let last = last.and_then(|last| self.nodes.get_mut(last.index()));
        if let Some(last) = last {
            last.next_sibling = Some(child);
        } else if let Some(parent) = self.nodes.get_mut(parent.index()) {
            parent.first_child = Some(child);
        }
    }

    /// Returns the table and frees the lookup structures.
    pub fn finish(self) -> StackTable {
        let nodes = self.nodes.iter();
        let (parents, frames) = nodes.map(|node| (node.parent, node.frame)).unzip();
        StackTable::new(parents, frames)
    }
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
