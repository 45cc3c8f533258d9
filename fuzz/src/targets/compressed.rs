//! A compressed record is not trusted. Its decompressed size and the memory are bounded, whatever its frame header
//! claims.

use crate::bounded_by;
use varid_recording::{MAX_CHUNK, decompress};

/// The window of a frame, which its header specifies, and the decoder's tables.
const WINDOW: usize = 3 * (8 << 20);

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    let mut out = Vec::new();
    let decompressed = bounded_by(bytes, 4, WINDOW, || decompress(bytes, &mut out));
    if decompressed.is_ok() {
        assert!(out.len() <= MAX_CHUNK, "more than a record may become");
    }
}
