//! A HotSpot's description of itself is not trusted: its tables, and the structures to which they lead.

use crate::bounded_by;

/// Bytes that a description may take whatever the input's size is: pages, as they are read, and names.
const CONSTANT: usize = 4 << 20;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded_by(bytes, 64, CONSTANT, || varid_vm::fuzzing::jvm(bytes));
}
