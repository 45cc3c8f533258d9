//! How are the native frames of a sample merged with its managed ones?
//!
//! A merge is a function from classified native frames ([`Step`]) and managed frames to items, innermost first. It reads nothing of the process
//! and resolves no method: that is done when the items become a callchain.

mod by_address;
mod by_loop;

pub(super) use by_address::by_address;
pub(super) use by_loop::by_loop;

use super::steps::Step;
use crate::seam::CodeKind;
use varid_model::{Address, FrameAddress, Reason, Stack};
use varid_shim::{CapturedSample, ManagedFrame};
use varid_unwind::UnwindError;

/// What a merge is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merging<'a> {
    pub record: &'a CapturedSample,
    /// The native frames, innermost first.
    pub steps: &'a [Step],
    /// Why unwinding stopped; None: it has come to where it should.
    pub stopped: Option<&'a UnwindError>,
    /// The stack pointer of the outermost frame's caller, where unwinding came to one.
    pub end: Option<Address>,
    /// The managed frames, innermost first.
    pub managed: &'a [ManagedFrame],
    /// What the session was asked for.
    pub stack: Stack,
    /// What the VM's code that calls native methods is; None: there is no VM.
    pub native_caller: Option<CodeKind>,
    /// The process has code that the VM has compiled.
    pub has_compiled_code: bool,
    /// The callchain has nothing yet.
    pub is_empty: bool,
    /// Nor has the kernel been interrupted: its first frame is the sampled instruction.
    pub wants_leaf: bool,
}

/// What a callchain gets next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A native frame.
    Native(FrameAddress),
    /// A managed frame, by its index.
    Managed(usize),
    /// A managed frame that the shim has walked and that is the native frame's own, by its index.
    Walked(usize),
    /// The methods that the native frame at this depth executes.
    MethodsOf {
        /// The native frame's.
        depth: usize,
        /// What has come before.
        inside: Inside,
    },
    /// A managed frame that has called the one before, by its index.
    Caller(usize),
    /// All managed frames from this one on, each the caller of the one before.
    Callers(usize),
    /// Native frames that are left out lie before the next managed one.
    NativeStretch,
    /// The sampled instruction: nothing else stands for it.
    Leaf,
    /// Frames are missing here.
    Missing(Reason),
}

/// Which managed frame came last while native ones were merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// None yet.
    Nothing,
    /// One whose caller is managed, too.
    Fragment,
    /// One that native code may have called.
    Edge,
}

/// Whether a managed frame has any place in a callchain: the VM's own methods have none.
pub(super) type IsShown<'a> = &'a mut dyn FnMut(&ManagedFrame) -> bool;

/// The items of a merge, and the managed frames that are left.
struct Merged<'a> {
    of: Merging<'a>,
    is_shown: IsShown<'a>,
    items: &'a mut Vec<Item>,
    /// How many of the managed frames are dealt with.
    done: usize,
}

impl<'a> Merged<'a> {
    fn new(of: Merging<'a>, is_shown: IsShown<'a>, items: &'a mut Vec<Item>) -> Self {
        items.clear();
        Self {
            of,
            is_shown,
            items,
            done: 0,
        }
    }

    /// The innermost managed frame that is left.
    fn next(&self) -> Option<&'a ManagedFrame> {
        self.of.managed.get(self.done)
    }

    /// The managed frames that are left.
    fn rest(&self) -> &'a [ManagedFrame] {
        self.of.managed.get(self.done..).unwrap_or_default()
    }

    /// The innermost managed frame that is left is dealt with; its index.
    fn take(&mut self) -> usize {
        let index = self.done;
        self.done = index.saturating_add(1).min(self.of.managed.len());
        index
    }

    /// Something that is shown, whatever it is.
    fn push(&mut self, item: Item) {
        self.items.push(item);
        (self.of.wants_leaf, self.of.is_empty) = (false, false);
    }

    fn push_managed(&mut self, index: usize, item: Item) {
        let is_first = self.of.is_empty;
        let frame = self.of.managed.get(index);
        if is_first && frame.is_some_and(|frame| !(self.is_shown)(frame)) {
            self.items.push(item);
            return;
        }
        self.push(item);
    }

    /// The innermost managed frame that is left.
    fn managed(&mut self) {
        let index = self.take();
        self.push_managed(index, Item::Managed(index));
    }

    /// The innermost managed frame that is left, which has called the one before.
    fn caller(&mut self) {
        let index = self.take();
        self.push_managed(index, Item::Caller(index));
    }

    /// The leaf: an interrupted loop has been left out for the frame that it executes.
    fn leaf(&mut self) {
        while let Some(next) = self.next().filter(|_| self.of.wants_leaf) {
            self.managed();
            if next.is_outermost() {
                self.items.push(Item::NativeStretch);
            }
        }
        if self.of.wants_leaf {
            self.push(Item::Leaf);
        }
    }

    /// The managed frames that are left.
    fn callers(&mut self) {
        self.items.push(Item::Callers(self.done));
    }
}

#[cfg(test)]
mod tests;
