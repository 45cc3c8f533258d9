//! A perf map is not trusted. It is read as a whole and in two pieces.

use crate::bounded;
use varid_symbolizer::jit::PerfMap;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 256, || {
        let whole = PerfMap::parse(bytes);
        for code in whole.map().codes() {
            assert!(code.range.start < code.range.end, "code of no bytes");
        }
        let mut grown = PerfMap::default();
        let (read, _) = grown.feed(&bytes[..bytes.len() / 2], 1);
        let (rest, _) = grown.feed(&bytes[read..], 2);
        assert!(read + rest <= bytes.len(), "more than there is");
        for address in [0, 0x1000, 0x7f00_0000_0000, u64::MAX] {
            let _ = (whole.lookup(0, address), grown.lookup(2, address));
        }
    });
}
