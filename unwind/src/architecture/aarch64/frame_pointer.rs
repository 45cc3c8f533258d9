//! The caller of code that keeps a frame pointer. It points at {caller's frame pointer, return address}, which may lie anywhere in the
//! frame.

use crate::architecture::Caller;
use crate::architecture::frame_record::FrameRecord;
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use varid_model::Regs;

/// Returns the caller of such code. Its stack pointer is unknown, but does not lie below the two words. Its other registers are unknown,
/// because the code may have saved them anywhere.
pub(super) fn caller(frame: &NativeFrame, stack: StackSlice<'_>) -> Option<Caller> {
    let record = FrameRecord::read(frame, stack)?;
    let machine = frame.regs.machine();
    let mut regs = Regs::unknown(machine);
    regs.set_frame(record.return_address, record.end.get(), record.caller_fp);
    regs.set(machine.sp(), None);
    Some(Caller {
        cfa: record.end,
        regs,
    })
}
