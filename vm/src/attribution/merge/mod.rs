//! Merges the native frames of a sample with its managed ones.
//!
//! A merge is a function from classified native frames ([`Step`]) and managed frames to [`Item`]s, innermost first. Of the process it asks only
//! whether the innermost managed frames are methods of the VM's own ([`ShownFn`]). [`Chain::extend`](super::chain::Chain::extend) resolves the
//! methods.

mod by_address;
mod by_loop;

pub(super) use by_address::by_address;
pub(super) use by_loop::by_loop;

use super::steps::Step;
use crate::seam::CodeKind;
use varid_model::{Address, FrameAddress, Reason, Stack};
use varid_shim::{CapturedSample, ManagedFrame};
use varid_unwind::UnwindError;

/// The input of a merge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merging<'a> {
    pub record: &'a CapturedSample,
    /// The native frames, innermost first.
    pub steps: &'a [Step],
    /// Why unwinding stopped early, if it did.
    pub stopped: Option<&'a UnwindError>,
    /// The first address above the outermost frame, if unwinding ended where it was asked to.
    pub end: Option<Address>,
    /// The managed frames, innermost first.
    pub managed: &'a [ManagedFrame],
    /// The index of a managed frame that is not linked to its caller yet.
    pub unlinked: Option<usize>,
    /// Which stacks the session records.
    pub stack: Stack,
    /// The kind of code that calls native methods. None without a VM.
    pub native_caller: Option<CodeKind>,
    /// The process has compiled code.
    pub has_compiled_code: bool,
    /// The callchain is empty.
    pub is_empty: bool,
    /// The callchain is empty, and its first frame is the sampled instruction: the kernel was not interrupted.
    pub wants_leaf: bool,
}

/// The next part of a callchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A native frame.
    Native(FrameAddress),
    /// A managed frame, by its index.
    Managed(usize),
    /// A managed frame that the shim walked, for the native frame with the same stack pointer; by its index.
    Walked(usize),
    /// The methods that the native frame at this depth executes.
    MethodsOf {
        /// The native frame's.
        depth: usize,
        /// The managed frame before it.
        inside: Inside,
    },
    /// A managed frame that called the previous one, by its index.
    Caller(usize),
    /// All managed frames from this index on, each the caller of the previous one.
    Callers(usize),
    /// Native frames are left out before the next managed one.
    NativeStretch,
    /// The sampled instruction itself, if the callchain has nothing else for it.
    Leaf,
    /// Frames are missing here, for this reason.
    Missing(Reason),
}

/// The previous managed frame of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// None.
    Nothing,
    /// Its caller is managed, too.
    Fragment,
    /// Native code may have called it.
    Edge,
}

/// Tells whether a managed frame appears in the callchain: the VM's own methods do not.
pub(super) type ShownFn<'a> = &'a mut dyn FnMut(&ManagedFrame) -> bool;

/// A merge in progress.
struct Merged<'a> {
    of: Merging<'a>,
    is_shown: ShownFn<'a>,
    items: &'a mut Vec<Item>,
    /// The number of managed frames that are consumed.
    done: usize,
}

impl<'a> Merged<'a> {
    fn new(of: Merging<'a>, is_shown: ShownFn<'a>, items: &'a mut Vec<Item>) -> Self {
        items.clear();
        Self {
            of,
            is_shown,
            items,
            done: 0,
        }
    }

    /// The innermost remaining managed frame.
    fn next(&self) -> Option<&'a ManagedFrame> {
        self.of.managed.get(self.done)
    }

    /// The remaining managed frames.
    fn rest(&self) -> &'a [ManagedFrame] {
        self.of.managed.get(self.done..).unwrap_or_default()
    }

    /// Consumes the innermost remaining managed frame and returns its index.
    fn take(&mut self) -> usize {
        let index = self.done;
        self.done = index.saturating_add(1).min(self.of.managed.len());
        index
    }

    /// Appends an item that appears in the callchain.
    fn push(&mut self, item: Item) {
        self.items.push(item);
        (self.of.wants_leaf, self.of.is_empty) = (false, false);
    }

    fn push_managed(&mut self, index: usize, item: Item) {
        let is_first = self.of.is_empty;
        let frame = self.of.managed.get(index);
        match is_first && frame.is_some_and(|frame| !(self.is_shown)(frame)) {
            true => self.items.push(item),
            false => self.push(item),
        }
        if self.of.unlinked == Some(index) {
            self.push(Item::Missing(Reason::TornFrames));
        }
    }

    /// Appends the innermost remaining managed frame.
    fn managed(&mut self) {
        let index = self.take();
        self.push_managed(index, Item::Managed(index));
    }

    /// Appends the innermost remaining managed frame, which called the previous one.
    fn caller(&mut self) {
        let index = self.take();
        self.push_managed(index, Item::Caller(index));
    }

    /// Completes the leaf: an interrupted loop was omitted in favour of the frame that it executes.
    fn leaf(&mut self) {
        while let Some(next) = self.next().filter(|_| self.of.wants_leaf) {
            self.managed();
            if next.is_outermost() {
                self.items.push(Item::NativeStretch);
            }
        }
        // Where a method turns out to be the VM's own, nothing else is the leaf.
        self.items.push(Item::Leaf);
        if self.of.wants_leaf {
            (self.of.wants_leaf, self.of.is_empty) = (false, false);
        }
    }

    /// Appends the remaining managed frames.
    fn callers(&mut self) {
        let unlinked = self.of.unlinked.map_or(0, |at| at.saturating_add(1));
        for _ in self.done..unlinked {
            self.caller();
        }
        self.items.push(Item::Callers(self.done));
    }
}

#[cfg(test)]
mod tests;
