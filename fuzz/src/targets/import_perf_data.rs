//! perf.data of others is never believed: what is imported of it is a session that is read to its end, with every sample counted.

use crate::{bounded_by, imported};

/// A zstd window, the records that wait for their order, and a batch of the session.
const CONSTANT: usize = 128 << 20;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded_by(bytes, 64, CONSTANT, || {
        imported(bytes, "perf-data");
    });
}
