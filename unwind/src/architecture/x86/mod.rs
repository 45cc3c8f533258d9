//! x86, 64-bit and 32-bit: a call pushes its return address.

mod code_address;
mod frame_pointer;
mod leaf;

use super::{Architecture, Caller};
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use std::ops::Range;
use varid_model::{Machine, Regs};

/// The conventions of x86.
pub(super) struct X86;

impl Architecture for X86 {
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

    fn thread_end(&self, machine: Machine) -> Option<&'static [u8]> {
        // mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall: src/thread/x86_64/clone.s of musl.
        const X86_64: &[u8] = &[0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05];
        (machine == Machine::X86_64).then_some(X86_64)
    }

    fn exits_after(&self, machine: Machine, code: &[u8]) -> Option<Range<usize>> {
        // call *%reg; mov %eax, %edi; call: src/env/__libc_start_main.c of musl.
        let is_it = matches!(code, [0xff, 0xd0..=0xd7, 0x89, 0xc7, 0xe8, ..]);
        (machine == Machine::X86_64 && is_it).then_some(2..5)
    }
}
