//! Which part of its thread's stack does a record hold?

use varid_shim::CapturedSample;
use varid_unwind::StackSlice;

/// The copy of the stack that a record has.
pub(crate) fn stack_of(record: &CapturedSample) -> StackSlice<'_> {
    StackSlice::new(record.stack_addr, &record.stack)
}
