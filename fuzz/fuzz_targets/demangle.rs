//! A mangled C++ name is never believed: its demangled form is bounded, or there is none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_demangle::demangle;
use varid_fuzz::bounded;

/// The longest name that is asked for, in bytes.
const MAX_LENGTH: usize = 8192;

fuzz_target!(|bytes: &[u8]| {
    // Each line is a name, so that one seed file holds names of all kinds.
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
});
