//! What ART's compiler notes down of its code, in a JIT's code cache or an oat file, is never believed.

use crate::bounded;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 16, || varid_vm::fuzzing::code_info(bytes));
}
