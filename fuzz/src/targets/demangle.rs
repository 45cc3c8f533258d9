//! A mangled C++ name is not trusted. It either cannot be demangled, or the result is bounded.

use crate::bounded;
use varid_demangle::demangle;

/// The maximum length of a name, in bytes.
const MAX_LENGTH: usize = 8192;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    // Each line is a name, so that one seed file can have names of all kinds.
    for line in String::from_utf8_lossy(bytes).lines().take(64) {
        for name in [line.to_owned(), format!("_Z{line}")] {
            bounded(name.as_bytes(), 1024, || {
                if let Some(demangled) = demangle(&name, MAX_LENGTH) {
                    assert!(
                        demangled.len() <= MAX_LENGTH,
                        "a name longer than the limit"
                    );
                }
            });
        }
    }
}
