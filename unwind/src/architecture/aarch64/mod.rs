//! AArch64: a call leaves its return address in a register, and a function may sign it.

mod code_address;
mod frame_pointer;
mod leaf;
mod signal_frame;

use super::{Architecture, Caller};
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use gimli::Vendor;
use varid_model::{Machine, Regs};

/// The conventions of AArch64.
pub(super) struct Aarch64;

impl Architecture for Aarch64 {
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

    fn links_every_frame(&self) -> bool {
        true
    }

    fn interrupted(
        &self,
        frame: &NativeFrame,
        linked: Option<&Caller>,
        stack: StackSlice<'_>,
    ) -> Option<Caller> {
        signal_frame::interrupted(frame, linked, stack)
    }

    fn thread_end(&self, _: Machine) -> Option<&'static [u8]> {
        // mov x8, #93; svc #0: src/thread/aarch64/clone.s of musl.
        Some(&[0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4])
    }

    /// Signed return addresses are marked by an operation that only AArch64 has.
    fn vendor(&self) -> Vendor {
        Vendor::AArch64
    }
}
