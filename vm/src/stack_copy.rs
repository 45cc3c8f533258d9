//! Which part of its thread's stack does a record hold?

use varid_shim::{CapturedSample, flags};
use varid_unwind::StackSlice;

/// The copies of stacks that a record has.
pub(crate) fn stack_of(record: &CapturedSample) -> StackSlice<'_> {
    let stack = StackSlice::new(record.stack_addr, &record.stack);
    match record.has(flags::INTERRUPTED) {
        true => stack.interrupting(record.interrupted.start, &record.interrupted.bytes),
        false => stack,
    }
}
