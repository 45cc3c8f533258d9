//! Which part of its thread's stack does a record hold?

use varid_shim::{CapturedSample, flags};
use varid_unwind::StackSlice;

/// The copies of stacks that a record has.
pub(crate) fn stack_of(record: &CapturedSample) -> StackSlice<'_> {
    let stack = StackSlice::new(record.stack_addr, &record.stack)
        .without(record.holes)
        .and_beyond(&record.beyond);
    match record.has(flags::INTERRUPTED) {
        true => {
            let below = &record.interrupted;
            stack.interrupting(below.start, &below.bytes, below.holes)
        }
        false => stack,
    }
}
