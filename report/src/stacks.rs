//! The stacks of a profile, as a prefix tree of frames.

use std::num::NonZeroU32;

use crate::{frames::FrameId, index::compact_index_types};

compact_index_types! {
    /// A node of a [`StackTable`]: a frame with all its callers. Parents have smaller indices than their children.
    StackId;
}

/// The stacks of a profile as a prefix tree. A stack consists of the frame of its leaf and of its parent, the stack of
/// the callers.
///
/// Stacks with the same outer frames share these nodes. A node takes 8 bytes.
#[derive(Debug, Clone, Default)]
pub struct StackTable {
    /// By [`StackId`]. None for outermost frames. A parent precedes its children.
    parents: Vec<Option<StackId>>,
    /// By [`StackId`].
    frames: Vec<FrameId>,
}

/// A step of a walk through a [`StackTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// The stack, before its children.
    Enter(StackId),
    /// The stack, after all its descendants.
    Leave(StackId),
}

impl StackTable {
    /// Makes a table from the parent (None for outermost frames) and the frame of each stack. Parents must precede
    /// their children.
    pub(crate) const fn new(parents: Vec<Option<StackId>>, frames: Vec<FrameId>) -> Self {
        Self { parents, frames }
    }

    /// The number of stacks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns true if there is no stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// All stacks. Each one follows its parent.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = StackId> + ExactSizeIterator + use<> {
        // A table has fewer stacks than `u32` has values.
        let numbers = 0..u32::try_from(self.len()).unwrap_or(u32::MAX);
        numbers.map(|number| StackId(NonZeroU32::MIN.saturating_add(number)))
    }

    /// The innermost frame of a stack.
    #[must_use]
    pub fn frame(&self, stack: StackId) -> Option<FrameId> {
        self.frames.get(stack.index()).copied()
    }

    /// The stack of the callers. None if the frame is the outermost.
    #[must_use]
    pub fn parent(&self, stack: StackId) -> Option<StackId> {
        self.parents.get(stack.index()).copied().flatten()
    }

    /// A stack and its callers, from the leaf to the outermost frame.
    pub fn walk(&self, leaf: StackId) -> impl Iterator<Item = StackId> {
        std::iter::successors(Some(leaf), |stack| self.parent(*stack))
    }

    /// The frames of a stack, from the leaf to the outermost.
    pub fn frames_of(&self, leaf: StackId) -> impl Iterator<Item = FrameId> {
        self.walk(leaf).filter_map(|stack| self.frame(stack))
    }

    /// The tree for walks from callers to callees. It takes 8 bytes for each stack.
    #[must_use]
    pub fn tree(&self) -> StackTree<'_> {
        self.tree_of(|_| true)
    }

    /// The tree of the stacks that pass a test. The test must hold for all parents of such stacks.
    pub(crate) fn tree_of(&self, test: impl Fn(StackId) -> bool) -> StackTree<'_> {
        let mut first_children = vec![None; self.len()];
        let mut next_siblings = vec![None; self.len()];
        let mut first_root = None;
        for stack in self.ids().rev().filter(|stack| test(*stack)) {
            let head = match self.parent(stack) {
                Some(parent) => first_children.get_mut(parent.index()),
                None => Some(&mut first_root),
            };
            if let (Some(head), Some(next)) = (head, next_siblings.get_mut(stack.index())) {
                *next = head.replace(stack);
            }
        }
        StackTree {
            table: self,
            first_children,
            next_siblings,
            first_root,
        }
    }

    /// Number of bytes allocated for the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        bytes_of(&self.parents).saturating_add(bytes_of(&self.frames))
    }
}

/// Number of bytes allocated for a vector.
pub(crate) fn bytes_of<T>(items: &Vec<T>) -> usize {
    items.capacity().saturating_mul(size_of::<T>())
}

/// The stacks of a [`StackTable`] with their children.
#[derive(Debug, Clone)]
pub struct StackTree<'s> {
    table: &'s StackTable,
    first_children: Vec<Option<StackId>>,
    /// Outermost frames are siblings.
    next_siblings: Vec<Option<StackId>>,
    first_root: Option<StackId>,
}

impl StackTree<'_> {
    /// The stacks with one frame.
    pub fn roots(&self) -> impl Iterator<Item = StackId> {
        self.siblings(self.first_root)
    }

    /// The children of a stack.
    pub fn children(&self, stack: StackId) -> impl Iterator<Item = StackId> {
        self.siblings(self.first_child(stack))
    }

    fn siblings(&self, first: Option<StackId>) -> impl Iterator<Item = StackId> {
        std::iter::successors(first, |stack| self.next_sibling(*stack))
    }

    /// Visits every stack depth-first, before and after its descendants. It does not recurse, because stacks may be
    /// hundreds of thousands of frames deep.
    pub fn visit(&self, mut visit: impl FnMut(Visit)) {
        let mut next = self.first_root;
        while let Some(mut at) = next {
            visit(Visit::Enter(at));
            next = self.first_child(at);
            // Go up until there is a sibling.
            while next.is_none() {
                visit(Visit::Leave(at));
                next = self.next_sibling(at);
                let Some(parent) = self.table.parent(at) else {
                    break;
                };
                at = parent;
            }
        }
    }

    fn first_child(&self, stack: StackId) -> Option<StackId> {
        self.first_children.get(stack.index()).copied().flatten()
    }

    fn next_sibling(&self, stack: StackId) -> Option<StackId> {
        self.next_siblings.get(stack.index()).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack_table_builder::StackTableBuilder;
    use proptest::{collection::vec, prelude::*};
    use std::collections::HashSet;

    fn table(stacks: &[Vec<u32>]) -> (StackTable, Vec<Option<StackId>>) {
        let mut builder = StackTableBuilder::default();
        let frames = |stack: &Vec<u32>| stack.iter().copied().map(FrameId).collect::<Vec<_>>();
        let ids = stacks
            .iter()
            .map(|stack| builder.intern(frames(stack)))
            .collect();
        (builder.finish(), ids)
    }

    proptest! {
        #[test]
        fn a_stack_has_the_frames_that_it_was_made_of_and_is_there_once(
            stacks in vec(vec(0..4u32, 0..6), 0..30),
        ) {
            let (table, ids) = table(&stacks);
            for (stack, id) in stacks.iter().zip(&ids) {
                let mut frames: Vec<u32> = id
                    .map(|id| table.frames_of(id).map(|frame| frame.0).collect())
                    .unwrap_or_default();
                frames.reverse();
                prop_assert_eq!(&frames, stack);
            }
            let prefixes: HashSet<&[u32]> = stacks
                .iter()
                .flat_map(|stack| (1..=stack.len()).map(|len| &stack[..len]))
                .collect();
            prop_assert_eq!(table.len(), prefixes.len());
            prop_assert!(table.ids().all(|id| table.parent(id).is_none_or(|parent| parent < id)));
        }

        #[test]
        fn a_walk_enters_parents_before_their_children_and_leaves_them_after(
            stacks in vec(vec(0..4u32, 0..6), 0..30),
        ) {
            let (table, _) = table(&stacks);
            let tree = table.tree();
            let mut path = Vec::new();
            let mut entered = HashSet::new();
            tree.visit(|visit| match visit {
                Visit::Enter(id) => {
                    assert_eq!(table.parent(id), path.last().copied());
                    assert!(entered.insert(id));
                    path.push(id);
                }
                Visit::Leave(id) => assert_eq!(path.pop(), Some(id)),
            });
            prop_assert!(path.is_empty());
            prop_assert_eq!(entered.len(), table.len());
            for id in table.ids() {
                prop_assert!(tree.children(id).all(|child| table.parent(child) == Some(id)));
            }
            let below = table.ids().map(|id| tree.children(id).count()).sum::<usize>();
            prop_assert_eq!(below + tree.roots().count(), table.len());
        }
    }
}
