//! A perf.data file is not trusted. An imported session can be read to its end, and every sample is counted.

use crate::{bounded_by, imported};

/// A zstd window, the records in the sorter, and a batch of the session.
const CONSTANT: usize = 128 << 20;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded_by(bytes, 64, CONSTANT, || {
        imported(bytes, "perf-data");
    });
}
