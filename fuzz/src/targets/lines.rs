//! Line programs and function trees of an ELF file, its debug link and its .gnu_debugdata are not trusted.

use crate::bounded;
use varid_symbolizer::elf::{DebugFiles, ElfSource};

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 1024, || {
        // A root makes the reader follow links.
        let nowhere = DebugFiles::none().with_root("/nonexistent");
        let Ok(source) = ElfSource::from_bytes(bytes.to_vec(), "/nonexistent/libfuzz.so", &nowhere)
        else {
            return;
        };
        let places = (0..0x2000)
            .step_by(4)
            .chain([1 << 32, u64::MAX / 2, u64::MAX]);
        for address in places {
            for frame in source.frames(address) {
                let known = !frame.function.is_empty() || frame.location.is_some();
                assert!(known, "a frame of nothing");
                if let Some(location) = frame.location {
                    assert!(
                        location.line > 0 && !location.file.is_empty(),
                        "a location that is none"
                    );
                }
            }
        }
        for symbol in source.symbols().functions().take(1000) {
            assert!(symbol.start < symbol.end, "a function of no bytes");
        }
    });
}
