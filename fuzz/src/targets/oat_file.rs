//! An oat file's header, its tables of compiled methods and the headers of their code are never believed.

use crate::bounded;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 128, || varid_vm::fuzzing::oat_file(bytes));
}
