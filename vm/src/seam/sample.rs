//! A sample as a VM gets it, and the managed frames that it returns.

use super::CodeKind;
use std::borrow::Cow;
use varid_model::{Precision, Reason};
use varid_shim::{CapturedSample, ManagedFrame};
use varid_unwind::NativeStack;

/// A sample after its native frames have been unwound.
#[derive(Debug, Clone, Copy)]
pub struct Unwound<'r> {
    /// The shim's record.
    pub record: &'r CapturedSample,
    /// The user's instruction pointer.
    pub ip: u64,
    /// The kind of the code there, if it is the VM's.
    pub leaf: Option<CodeKind>,
    /// No native frame lies between the leaf and the innermost managed frame.
    pub leaf_is_managed: bool,
    /// The unwound native frames.
    pub native: &'r NativeStack,
}

/// The managed frames of a sample.
#[derive(Debug, Clone)]
pub struct ManagedStack<'r> {
    /// The frames, innermost first.
    pub frames: Cow<'r, [ManagedFrame]>,
    /// The walk ended where a read failed or contradicted another, and nothing else has led to the frames beyond.
    pub torn: bool,
    /// Why there may be more of them, otherwise.
    pub incomplete: Option<Reason>,
    /// What the innermost says of the leaf.
    pub leaf: LeafMethod,
    /// The index of a frame that the VM has put into its list and not yet linked to its caller: the callers up to the next frame are missing.
    pub unlinked: Option<usize>,
}

impl ManagedStack<'_> {
    /// Returns why there may be more frames. None: these are all.
    pub(crate) fn missing(&self) -> Option<Reason> {
        match self.torn {
            true => Some(Reason::TornFrames),
            false => self.incomplete,
        }
    }
}

/// What the innermost managed frame says of the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeafMethod {
    /// It is what the leaf executes, or has called what that is in.
    #[default]
    Known,
    /// The loop's registers say nothing yet or no longer: the method is that of the thread's top frame, its bytecode pc the last one known.
    Transition,
    /// The leaf's own method has not published its frame: the innermost is its caller's.
    Unpublished,
}

/// The methods that a native frame executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameMethods {
    /// Innermost first: a compiler inlines some methods into others.
    pub frames: Vec<ManagedFrame>,
    /// How well the instruction of the innermost is known.
    pub precision: Precision,
}

/// How managed frames are merged with native ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOrder {
    /// Both lie on the native stack: a managed frame lies inside its caller's native frame.
    ByAddress,
    /// Managed frames lie elsewhere: each native frame of a loop stands for the managed frames up to the next one that native code
    /// called.
    ByLoop,
}
