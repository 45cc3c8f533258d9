//! The children of calling contexts, for walks from callers to callees.

use varid_recording::NodeId;

/// The children of nodes as linked lists, by [`NodeId`]. They take 16 bytes for each node.
#[derive(Debug)]
pub(crate) struct Children {
    first: Vec<Option<NodeId>>,
    next: Vec<Option<NodeId>>,
}

impl Children {
    /// Takes the parent of each node, by [`NodeId`]. Children are in the order of the nodes.
    pub fn new(
        parents: impl DoubleEndedIterator<Item = Option<NodeId>> + ExactSizeIterator,
    ) -> Self {
        let none = vec![None; parents.len()];
        let mut children = Self {
            first: none.clone(),
            next: none,
        };
        for (index, parent) in parents.enumerate().rev() {
            let head = parent.and_then(|parent| children.first.get_mut(parent.index()));
            // Nodes have numbers of 32 bits.
            let node = u32::try_from(index).ok().map(NodeId);
            if let (Some(head), Some(next)) = (head, children.next.get_mut(index)) {
                *next = std::mem::replace(head, node);
            }
        }
        children
    }

    /// Returns the first child of a node.
    pub fn first(&self, node: NodeId) -> Option<NodeId> {
        self.first.get(node.index()).copied().flatten()
    }

    /// Returns the next child of a node's parent.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        self.next.get(node.index()).copied().flatten()
    }
}
