//! A jitdump file is not trusted. It is read as a whole and in two pieces.

use crate::bounded;
use varid_symbolizer::jit::JitDump;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 256, || {
        let Ok(whole) = JitDump::parse(bytes) else {
            return;
        };
        for code in whole.map().codes() {
            assert!(code.range.start < code.range.end, "code of no bytes");
            let _ = whole.lookup(u64::MAX, code.range.start);
        }
        let mut grown = JitDump::new(bytes).expect("its header was read before");
        let records = bytes.get(grown.header_size()..).unwrap_or_default();
        let (read, _) = grown.feed(&records[..records.len() / 2]);
        let (rest, _) = grown.feed(&records[read..]);
        assert!(read + rest <= records.len(), "more than there is");
    });
}
