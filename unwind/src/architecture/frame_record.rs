//! Reads the frame record that a frame pointer leads to.

use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use varid_model::Address;

/// The two words at a frame pointer: {caller's frame pointer, return address}.
pub(super) struct FrameRecord {
    pub(super) caller_fp: u64,
    pub(super) return_address: u64,
    /// The first address above the two words.
    pub(super) end: Address,
}

impl FrameRecord {
    /// Reads the record at a frame's frame pointer, if that is aligned and does not lie below the frame.
    pub(super) fn read(frame: &NativeFrame, stack: StackSlice<'_>) -> Option<Self> {
        let machine = frame.regs.machine();
        let word = u64::from(machine.word());
        let fp = Address::new(frame.regs.fp()?);
        if fp < frame.sp || fp.get().checked_rem(word) != Some(0) {
            return None;
        }
        Some(Self {
            caller_fp: stack.word(machine, fp)?,
            return_address: stack.word(machine, fp.wrapping_add(word))?,
            end: fp.wrapping_add(word.wrapping_mul(2)),
        })
    }
}
