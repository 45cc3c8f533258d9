//! Reads a tree of another process, such as a map with addresses as keys.
//!
//! The tree is a `std::map` of libstdc++: a red-black tree whose nodes consist of words. It is read while the process changes it, so a node
//! may be missed, or one may be seen that has just been removed. No more nodes are followed than a tree can have.

use std::collections::{BTreeMap, BTreeSet};
use varid_tunnel::{Memory, TunnelError};

/// Size of a node in bytes.
pub(super) const NODE: usize = 56;
/// The most nodes of a whole tree that are read.
pub(super) const MAX_NODES: usize = 1024;
/// The most nodes from the root to a leaf, in a red-black tree with 2^32 nodes.
const MAX_DEPTH: usize = 64;
/// In a map: pointer to the root.
const ROOT: u64 = 16;

/// A node of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeNode {
    left: u64,
    right: u64,
    /// Its key, or the first word of it.
    pub key: u64,
    /// The word after that. It is the value, if the key has one word.
    pub second: u64,
    /// The third word.
    pub third: u64,
}

impl TreeNode {
    /// Parses a node. Its words: colour, parent, left, right, key, value.
    pub(super) fn parse(bytes: &[u8; NODE]) -> Self {
        let mut words = [0; NODE / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let [_colour, _parent, left, right, key, second, third] = words;
        Self {
            left,
            right,
            key,
            second,
            third,
        }
    }
}

/// Nodes that have been read, by address: searches in one tree begin with the same nodes.
#[derive(Debug, Default)]
pub(super) struct Nodes(BTreeMap<u64, [u8; NODE]>);

impl Nodes {
    fn at(&mut self, memory: &dyn Memory, address: u64) -> Result<[u8; NODE], TunnelError> {
        if let Some(known) = self.0.get(&address) {
            return Ok(*known);
        }
        let mut bytes = [0; NODE];
        memory.read(address, &mut bytes)?;
        self.0.insert(address, bytes);
        Ok(bytes)
    }

    /// Returns the node with the largest key that is at most `key`, in the tree of the map at an address.
    pub(super) fn floor(
        &mut self,
        memory: &dyn Memory,
        map: u64,
        key: u64,
    ) -> Result<Option<[u8; NODE]>, TunnelError> {
        let mut next = root(memory, map)?;
        let mut found = None;
        for _ in 0..MAX_DEPTH {
            if next == 0 {
                break;
            }
            let bytes = self.at(memory, next)?;
            let node = TreeNode::parse(&bytes);
            if node.key <= key {
                found = Some(bytes);
                next = node.right;
            } else {
                next = node.left;
            }
        }
        Ok(found)
    }
}

/// Returns all nodes of the tree of the map at an address, unordered; at most [`MAX_NODES`].
pub(super) fn all_nodes(memory: &dyn Memory, map: u64) -> Result<Vec<u8>, TunnelError> {
    let mut todo = vec![root(memory, map)?];
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(next) = todo.pop() {
        if next == 0 || seen.len() >= MAX_NODES || !seen.insert(next) {
            continue;
        }
        let mut bytes = [0; NODE];
        memory.read(next, &mut bytes)?;
        found.extend_from_slice(&bytes);
        let node = TreeNode::parse(&bytes);
        todo.extend([node.left, node.right]);
    }
    Ok(found)
}

fn root(memory: &dyn Memory, map: u64) -> Result<u64, TunnelError> {
    memory.read_word(map.wrapping_add(ROOT), 8)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Words;
    use super::*;

    const MAP: u64 = 0x300;

    /// A map with these nodes: left, right, key; the address of a node is 0x1000 times its place, counted from 1.
    fn map(nodes: &[[u64; 3]]) -> Words {
        let root = if nodes.is_empty() { 0 } else { 0x1000 };
        let mut words = Words::of(&[(MAP + ROOT, root)]);
        for (at, [left, right, key]) in (0x1000..).step_by(0x1000).zip(nodes) {
            words.write(at, &[0, 0, *left, *right, *key, key + 1, 0]);
        }
        words
    }

    fn floor(memory: &Words, key: u64) -> Option<u64> {
        let found = Nodes::default().floor(memory, MAP, key).unwrap();
        found.map(|bytes| {
            let node = TreeNode::parse(&bytes);
            assert_eq!(node.second, node.key + 1);
            node.key
        })
    }

    #[test]
    fn the_last_key_at_or_before_another_is_found() {
        let memory = map(&[
            [0x2000, 0x3000, 0x50_0000],
            [0, 0, 0x40_0000],
            [0x4000, 0, 0x70_0000],
            [0, 0, 0x60_0000],
        ]);
        let floor = |key| floor(&memory, key);
        assert_eq!(floor(0x3f_ffff), None);
        assert_eq!(floor(0x40_0000), Some(0x40_0000));
        assert_eq!(floor(0x4f_ffff), Some(0x40_0000));
        assert_eq!(floor(0x50_0000), Some(0x50_0000));
        assert_eq!(floor(0x6f_0000), Some(0x60_0000));
        assert_eq!(floor(u64::MAX), Some(0x70_0000));
        assert_eq!(all_nodes(&memory, MAP).unwrap().len(), 4 * NODE);
    }

    #[test]
    fn searches_that_share_nodes_read_them_once() {
        let memory = map(&[
            [0x2000, 0x3000, 0x50_0000],
            [0, 0, 0x40_0000],
            [0, 0, 0x70_0000],
        ]);
        let mut nodes = Nodes::default();
        for key in [0x40_0000, 0x40_0001, 0x70_0000] {
            nodes.floor(&memory, MAP, key).unwrap();
        }
        // Each search reads the pointer to the root.
        assert_eq!(memory.reads(), 3 + 3);
    }

    #[test]
    fn a_tree_without_an_end_is_left() {
        let memory = map(&[[0x1000, 0x1000, 0x50_0000]]);
        assert_eq!(floor(&memory, 0x50_0010), Some(0x50_0000));
        assert_eq!(all_nodes(&memory, MAP).unwrap().len(), NODE);
    }

    #[test]
    fn a_tree_that_leads_nowhere_is_an_error() {
        let memory = map(&[[0x9000, 0, 0x50_0000]]);
        assert!(Nodes::default().floor(&memory, MAP, 1).is_err());
        assert!(all_nodes(&memory, MAP).is_err());
        assert!(Nodes::default().floor(&memory, 0x8000, 1).is_err());
        assert_eq!(floor(&map(&[]), 1), None);
    }
}
