//! The native frames of a stack.

use crate::error::UnwindError;
use varid_model::{Address, FrameAddress, Regs};

/// How a frame was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reached {
    /// It is the leaf, or the caller of the previous frame.
    #[default]
    Unwound,
    /// Native frames between the previous frame and it are not known.
    Resumed,
}

/// A native frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeFrame {
    /// The instruction, or the return address of the frame's call.
    pub address: FrameAddress,
    /// The stack pointer in this frame. Nothing of the frame lies below it.
    pub sp: Address,
    /// Its registers, where they are known.
    pub regs: Regs,
    /// How it was found.
    pub reached: Reached,
}

impl NativeFrame {
    /// Returns the address to look up the function by.
    pub const fn lookup(&self) -> Address {
        self.address.lookup()
    }
}

/// The native frames of a stack, leaf first.
///
/// [`NativeStack::unwind`] fills it. Reusing one for the next sample reuses its memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NativeStack {
    /// The frames.
    pub frames: Vec<NativeFrame>,
    /// The first address above the last frame in the list, if it is known.
    pub end: Option<Address>,
    /// Why there are no further frames. None: the last frame is the outermost one, or encloses the address at which unwinding was to end.
    pub stopped: Option<UnwindError>,
}
