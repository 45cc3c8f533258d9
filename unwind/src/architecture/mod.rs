//! The conventions of each machine whose stacks are unwound.
//!
//! There is one folder per architecture, with the same files in each: `code_address` (which bits of a word are a code address),
//! `frame_pointer` (the caller of code that keeps one) and `leaf` (the caller of code that has no frame yet). 64-bit and 32-bit x86 share a
//! folder, because they differ only in word size and system calls. On AArch64, `signal_frame` reads the registers that a signal
//! interrupted.

mod aarch64;
mod arm;
mod frame_record;
mod x86;

use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use gimli::Vendor;
use std::ops::Range;
use varid_model::{Address, Machine, Regs};

/// The caller of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The frame's canonical frame address: the caller's stack pointer, or the lowest possible value of it.
    pub(crate) cfa: Address,
    /// The caller's registers.
    pub(crate) regs: Regs,
}

/// The conventions of a machine.
pub(crate) trait Architecture: Sync {
    /// Returns the bits of a word that form a code address, in a thread with these registers.
    fn code_address_mask(&self, regs: &Regs) -> u64;

    /// Returns the caller of code that has pushed nothing. Such code is mostly assembly.
    fn caller_of_leaf(&self, frame: &NativeFrame, stack: StackSlice<'_>) -> Option<Caller>;

    /// Returns the caller of code that keeps a frame pointer.
    fn caller_by_frame_pointer(&self, frame: &NativeFrame, stack: StackSlice<'_>)
    -> Option<Caller>;

    /// Returns true if every function with a frame links it to its caller's by the frame pointer.
    fn links_every_frame(&self) -> bool {
        false
    }

    /// Returns what a signal interrupted. `frame` is that of the kernel's trampoline, whose unwind information or frame pointer leads to
    /// `linked` instead.
    fn interrupted(
        &self,
        _frame: &NativeFrame,
        _linked: Option<&Caller>,
        _stack: StackSlice<'_>,
    ) -> Option<Caller> {
        None
    }

    /// Returns the code after the call of a thread's function, in the code that clone(2) returns to: the thread exits with the function's
    /// result.
    fn thread_end(&self, _machine: Machine) -> Option<&'static [u8]> {
        None
    }

    /// Returns the code after a call if some code begins with a call through a register of a function with whose result it calls another one,
    /// as `exit`.
    fn exits_after(&self, _machine: Machine, _code: &[u8]) -> Option<Range<usize>> {
        None
    }

    /// The vendor whose call frame operations the machine's compilers use.
    fn vendor(&self) -> Vendor {
        Vendor::Default
    }
}

/// Returns the conventions of a machine.
pub(crate) fn of(machine: Machine) -> &'static dyn Architecture {
    match machine {
        Machine::X86_64 | Machine::X86 => &x86::X86,
        Machine::Aarch64 => &aarch64::Aarch64,
        Machine::Arm => &arm::Arm,
    }
}
