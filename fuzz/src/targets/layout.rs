//! What a library says of ART's layout in its code is never believed, and reading it ends.

use crate::bounded;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    // Of each instruction there are registers' values, which a branch copies.
    bounded(bytes, 4096, || varid_vm::fuzzing::layout(bytes));
}
