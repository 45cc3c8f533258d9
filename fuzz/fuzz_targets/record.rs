//! A record of the shim is decoded or refused; what it says fits into its bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varid_shim::CapturedSample;

fuzz_target!(|bytes: &[u8]| {
    let Ok(record) = CapturedSample::decode(bytes) else {
        return;
    };
    let held = record.frames.len() * 16 + record.kernel.len() * 8 + record.stack_bytes();
    assert!(held <= bytes.len(), "more than the bytes hold");
    assert!(record.regs.ip().is_some(), "a record has its registers");
});
