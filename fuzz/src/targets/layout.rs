//! ART's layout, as derived from a library's code, is not trusted, and deriving it terminates.

use crate::bounded;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    // Each instruction has the values of registers, which are copied at a branch.
    bounded(bytes, 4096, || varid_vm::fuzzing::layout(bytes));
}
