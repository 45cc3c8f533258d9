//! A compressed record is never believed: it becomes so many bytes at most, and memory is bounded whatever its frame says.

use crate::bounded_by;
use varid_recording::{MAX_CHUNK, decompress};

/// A frame's window, which its header names, and its tables.
const WINDOW: usize = 3 * (8 << 20);

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    let mut out = Vec::new();
    let decompressed = bounded_by(bytes, 4, WINDOW, || decompress(bytes, &mut out));
    if decompressed.is_ok() {
        assert!(out.len() <= MAX_CHUNK, "more than a record may become");
    }
}
