//! An oat file is not trusted: its header, its tables of compiled methods and the headers of their code.

use crate::bounded;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 128, || varid_vm::fuzzing::oat_file(bytes));
}
