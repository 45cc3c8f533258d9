//! What of a frame is there, and which code says it?

use varid_model::{Address, Machine};

/// The most bytes of a routine. The longest, of encryption, have some thousand.
pub(super) const MAX_ROUTINE: u64 = 1 << 15;

/// What of a compiled frame is on the stack at an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hotspot) enum FrameState {
    /// All of it.
    Complete,
    /// All of it, but the caller's frame pointer is still in its register, and the return address where the call has left it.
    Unsaved,
    /// The caller's frame pointer is at the stack pointer, and the return address behind it.
    Pushed,
    /// Nothing. The return address is where the call has left it: at the stack pointer, or in the link register.
    Called,
}

/// The code of a compiled method as far as its frame is concerned. Offsets are in bytes from its first instruction.
#[derive(Debug, Clone, Copy)]
pub(in crate::hotspot) struct Prologue<'c> {
    /// Its instructions.
    pub(in crate::hotspot) code: &'c [u8],
    /// Where callers that know the receiver's class enter it. What is before has no frame.
    pub(in crate::hotspot) entry: usize,
    /// Where its frame is complete.
    pub(in crate::hotspot) complete: usize,
}

/// A frame of the interpreter that is being made or left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hotspot) struct PartialFrame {
    pub(in crate::hotspot) state: PartialState,
    /// DWARF number of the register with the sender's stack pointer.
    pub(in crate::hotspot) sender_sp: u16,
}

/// What of an interpreter frame there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hotspot) enum PartialState {
    /// The return address is where the call has left it: at the stack pointer, or in the link register.
    Called,
    /// The return address is in rax (x86-64).
    Popped,
    /// The caller's frame pointer is at the stack pointer, and still in its register; the return address is behind it (x86-64).
    Saved,
    /// The frame pointer leads to the caller. The words below it may be missing.
    Linked,
    /// The frame has been left. The return address is at the stack pointer (x86-64), or in the link register (AArch64).
    Left,
    /// The frame has been left. The return address is in r13 (x86-64).
    LeftPopped,
}

/// Code at its address.
#[derive(Debug, Clone, Copy)]
pub(in crate::hotspot) struct CodeAt<'c> {
    pub(in crate::hotspot) machine: Machine,
    pub(in crate::hotspot) start: Address,
    pub(in crate::hotspot) bytes: &'c [u8],
}
