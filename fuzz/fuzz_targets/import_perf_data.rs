//! perf.data of others is never believed: what is imported of it is a session that is read to its end, with every sample counted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_fuzz::{bounded_by, imported};
use varid_import::SourceFormat;

/// A zstd window, the records that wait for their order, and a batch of the session.
const CONSTANT: usize = 128 << 20;

fuzz_target!(|bytes: &[u8]| {
    bounded_by(bytes, 64, CONSTANT, || {
        imported(bytes, SourceFormat::PerfData)
    });
});
