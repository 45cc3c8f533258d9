//! A file that can contain dex files, nested archives included, is not trusted. Dex files lie within the file, or were
//! inflated.

use crate::bounded;
use varid_symbolizer::container::{dex_files, entries, zip};

/// The maximum compression ratio of deflate.
const INFLATED: usize = 1032;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    // Doubled because Vec grows by doubling.
    bounded(bytes, 2 * INFLATED, || {
        for place in zip::entries("fuzz", bytes, |_| true)
            .into_iter()
            .flatten()
            .flatten()
        {
            assert!(
                place.offset + place.len <= bytes.len() as u64,
                "an entry outside of the archive"
            );
        }
        for place in entries("fuzz", bytes).into_iter().flatten().flatten() {
            assert!(
                place.offset + place.len <= bytes.len() as u64,
                "a dex file outside of the file"
            );
        }
        for entry in dex_files("fuzz", bytes).into_iter().flatten().flatten() {
            if let Some(offset) = entry.offset {
                assert!(
                    bytes[offset as usize..].starts_with(&entry.bytes),
                    "bytes that are not the file's"
                );
            }
            for (name, dex) in entry.dex_files() {
                assert!(!name.is_empty());
                let _ = dex.map(|dex| dex.methods().count());
            }
        }
    });
}
