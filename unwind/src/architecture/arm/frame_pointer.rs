//! The caller of code that keeps a frame pointer. In clang's ARM code it points at {caller's frame pointer, return address}. GCC's frame
//! pointer points elsewhere in the frame, and does not lead to code.

use crate::architecture::Caller;
use crate::architecture::frame_record::FrameRecord;
use crate::native_stack::NativeFrame;
use crate::stack_slice::StackSlice;
use varid_model::Regs;

/// Returns the caller of such code. Its other registers are unknown, because the code may have saved them anywhere.
pub(super) fn caller(frame: &NativeFrame, stack: StackSlice<'_>) -> Option<Caller> {
    let record = FrameRecord::read(frame, stack)?;
    let mut regs = Regs::unknown(frame.regs.machine());
    regs.set_frame(record.return_address, record.end.get(), record.caller_fp);
    Some(Caller {
        cfa: record.end,
        regs,
    })
}
