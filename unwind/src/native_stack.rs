//! Which native frames does a stack have?

use crate::error::UnwindError;
use varid_model::{Address, FrameAddress, Regs};

/// A native frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeFrame {
    /// The instruction, or where the frame's call returns to.
    pub address: FrameAddress,
    /// The stack pointer in this frame: nothing of the frame lies below.
    pub sp: Address,
    /// Its registers, as far as they are known.
    pub regs: Regs,
}

impl NativeFrame {
    /// The address that tells which function this is.
    pub const fn lookup(&self) -> Address {
        self.address.lookup()
    }
}

/// The native frames of a stack, leaf first.
///
/// [`NativeStack::unwind`] fills it. One that is kept for the next sample keeps its memory, too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NativeStack {
    /// The frames.
    pub frames: Vec<NativeFrame>,
    /// The first address above the last frame of the list, if it is known.
    pub end: Option<Address>,
    /// Why there are no more frames; none: the last one is the outermost, or encloses the address at which unwinding was to end.
    pub stopped: Option<UnwindError>,
}
