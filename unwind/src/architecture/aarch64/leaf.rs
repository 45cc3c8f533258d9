//! The caller of code that has pushed nothing. The return address is in the link register, x30.

use crate::architecture::Caller;
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;

/// Returns the caller of such code.
pub(super) fn caller(frame: &NativeFrame, _: StackSlice<'_>) -> Option<Caller> {
    let mut regs = frame.regs;
    let return_address = regs.get(regs.machine().link()?)?;
    regs.set_frame(return_address, frame.sp.get(), regs.fp()?);
    Some(Caller {
        cfa: frame.sp,
        regs,
    })
}
