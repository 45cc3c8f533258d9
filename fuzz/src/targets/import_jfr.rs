//! A recording of Java Flight Recorder is not trusted. An imported session can be read to its end, and every sample is counted.

use crate::{bounded_by, imported};

/// The functions' names, of which a chunk may have many of few symbols, and a batch of the session.
const CONSTANT: usize = 512 << 20;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded_by(bytes, 256, CONSTANT, || imported(bytes, "jfr"));
}
