//! The caller of code that has pushed nothing. The return address is the word at the stack pointer.

use crate::architecture::Caller;
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;

/// Returns the caller of such code.
pub(super) fn caller(frame: &NativeFrame, stack: StackSlice<'_>) -> Option<Caller> {
    let mut regs = frame.regs;
    let machine = regs.machine();
    let return_address = stack.word(machine, frame.sp)?;
    let cfa = frame.sp.wrapping_add(u64::from(machine.word()));
    regs.set_frame(return_address, cfa.get(), regs.fp()?);
    Some(Caller { cfa, regs })
}
