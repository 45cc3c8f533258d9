//! Text of `perf script` and folded stacks are never believed: what is imported is a session that is read to its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_fuzz::{bounded_by, imported};
use varid_import::SourceFormat;

/// A batch of the session.
const CONSTANT: usize = 16 << 20;

fuzz_target!(|bytes: &[u8]| {
    for format in [SourceFormat::PerfScript, SourceFormat::Folded] {
        bounded_by(bytes, 256, CONSTANT, || imported(bytes, format));
    }
});
