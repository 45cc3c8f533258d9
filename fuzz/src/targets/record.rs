//! A record of the shim is either decoded or rejected. The decoded fields fit into the record's bytes.

use varid_shim::CapturedSample;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    let Ok(record) = CapturedSample::decode(bytes) else {
        return;
    };
    let held = record.frames.len() * 16 + record.kernel.len() * 8 + record.stack_bytes();
    assert!(held <= bytes.len(), "more than the bytes hold");
    assert!(record.regs.ip().is_some(), "a record has its registers");
}
