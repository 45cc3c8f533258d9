//! 32-bit ARM: a call leaves its return address in a register. Its lowest bit marks Thumb code.

mod code_address;
mod frame_pointer;
mod leaf;

use super::{Architecture, Caller};
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;

use varid_model::Regs;

/// The conventions of 32-bit ARM.
pub(super) struct Arm;

impl Architecture for Arm {
    fn code_address_mask(&self, regs: &Regs) -> u64 {
        code_address::mask(regs)
    }

    fn caller_of_leaf(&self, frame: &NativeFrame, stack: StackSlice<'_>) -> Option<Caller> {
        leaf::caller(frame, stack)
    }

    fn caller_by_frame_pointer(
        &self,
        frame: &NativeFrame,
        stack: StackSlice<'_>,
    ) -> Option<Caller> {
        frame_pointer::caller(frame, stack)
    }
}
