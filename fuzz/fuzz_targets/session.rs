//! A recording is never believed: its records come in order of time until an error ends them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_fuzz::with_session;
use varid_recording::PERF_DATA;

fuzz_target!(|bytes: &[u8]| {
    with_session(&[(PERF_DATA, bytes)], |session| {
        let Ok(records) = session.records() else {
            return;
        };
        let (mut count, mut failed) = (0usize, false);
        for record in records {
            assert!(!failed, "a record after the error that ends them");
            failed = record.is_err();
            count += 1;
            // The smallest record is its header of eight bytes; one error may follow.
            assert!(
                count <= bytes.len() / 8 + 1,
                "more records than there is room for"
            );
        }
    });
});
