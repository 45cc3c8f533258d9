//! The text of `perf script` and folded stacks are not trusted. An imported session can be read to its end.

use crate::{bounded_by, imported};

/// A batch of the session.
const CONSTANT: usize = 16 << 20;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    for format in ["perf-script", "folded"] {
        bounded_by(bytes, 256, CONSTANT, || imported(bytes, format));
    }
}
