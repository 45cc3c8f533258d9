//! What differs between the machines whose stacks are unwound?
//!
//! One folder per architecture, with the same files in each: `code_address` (which bits of a word are a code address),
//! `frame_pointer` (the caller of code that keeps one) and `leaf` (the caller of code that has no frame yet). 64-bit and
//! 32-bit x86 differ in the size of a word and in system calls only and share a folder. On AArch64 `signal_frame` is what a signal interrupted.

mod aarch64;
mod arm;
mod frame_record;
mod x86;

use crate::fixed_frame::FixedFrame;
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use gimli::Vendor;
use varid_model::{Address, Machine, Regs};

/// The caller of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The frame's canonical frame address: the caller's stack pointer, or the lowest address that it can be.
    pub(crate) cfa: Address,
    /// The caller's registers.
    pub(crate) regs: Regs,
}

/// The conventions of a machine.
pub(crate) trait Architecture: Sync {
    /// The bits of a word that are a code address, in a thread with these registers.
    fn code_address_mask(&self, regs: &Regs) -> u64;

    /// The caller of code that has pushed nothing: most often it is assembly.
    fn caller_of_leaf(&self, frame: &NativeFrame, stack: StackSlice<'_>) -> Option<Caller>;

    /// The caller of code that keeps a frame pointer.
    fn caller_by_frame_pointer(&self, frame: &NativeFrame, stack: StackSlice<'_>)
    -> Option<Caller>;

    /// Whether every function that has a frame links it to its caller's by the frame pointer.
    fn links_every_frame(&self) -> bool {
        false
    }

    /// The frame that the code at a return address leaves, where that does nothing else before it returns.
    fn frame_left_by(&self, _machine: Machine, _code: &[u8]) -> Option<FixedFrame> {
        None
    }

    /// What a signal has interrupted, from the frame of the kernel's trampoline, where its unwind information leads to `linked` instead.
    fn interrupted(
        &self,
        _frame: &NativeFrame,
        _linked: &Caller,
        _stack: StackSlice<'_>,
    ) -> Option<Caller> {
        None
    }

    /// What follows the call of a thread's function in code that clone(2) has led into: the thread exits with what the function returns.
    fn thread_end(&self, _machine: Machine) -> Option<&'static [u8]> {
        None
    }

    /// Whose operations of call frame information its compilers use.
    fn vendor(&self) -> Vendor {
        Vendor::Default
    }
}

/// The conventions of a machine.
pub(crate) fn of(machine: Machine) -> &'static dyn Architecture {
    match machine {
        Machine::X86_64 | Machine::X86 => &x86::X86,
        Machine::Aarch64 => &aarch64::Aarch64,
        Machine::Arm => &arm::Arm,
    }
}
