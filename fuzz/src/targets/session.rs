//! A recording is not trusted. Its records are in time order until the first error.

use crate::with_session;
use varid_recording::{MAX_CHUNK, PERF_DATA};

/// The type of a compressed record.
const COMPRESSED: u8 = 81;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    with_session(&[(PERF_DATA, bytes)], |session| {
        let Ok(records) = session.records() else {
            return;
        };
        let (mut count, mut failed) = (0usize, false);
        for record in records {
            assert!(!failed, "a record after the error that ends them");
            failed = record.is_err();
            count += 1;
            // The smallest record is its header of eight bytes, and one error may follow. A compressed record has a
            // frame after its header, and decompresses to a chunk of records.
            let plain = bytes.len() / 8 + 1;
            let compressed = bytes.len() / 16 * (MAX_CHUNK / 8);
            let most = match bytes.contains(&COMPRESSED) {
                true => plain + compressed,
                false => plain,
            };
            assert!(count <= most, "more records than there is room for");
        }
    });
}
