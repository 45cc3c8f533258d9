//! The code info that ART's compiler writes, in a JIT code cache or an oat file, is not trusted.

use crate::bounded;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 16, || varid_vm::fuzzing::code_info(bytes));
}
