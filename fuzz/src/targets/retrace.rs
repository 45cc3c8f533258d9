//! A mapping file of R8 or ProGuard is not trusted. Every query on it returns.

use crate::bounded;
use varid_symbolizer::retrace::{Mapping, Position};

/// The number of words of the file that are looked up, as class and method.
const ASKED: usize = 64;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    bounded(bytes, 256, || {
        let Ok(mapping) = Mapping::parse(bytes.to_vec()) else {
            return;
        };
        assert!(mapping.skipped() <= bytes.len(), "more lines than bytes");
        let text = String::from_utf8_lossy(bytes);
        let names = text
            .split_ascii_whitespace()
            .map(|word| word.trim_end_matches(':'));
        for pair in names.collect::<Vec<_>>().windows(2).take(ASKED) {
            let _ = mapping.class(pair[1]);
            for method in [pair[0], pair[1], "a"] {
                for place in [
                    None,
                    Some(Position::Line(0)),
                    Some(Position::Line(1)),
                    Some(Position::Pc(17)),
                    Some(Position::Line(u32::MAX)),
                ] {
                    for params in [None, Some(""), Some("int,a.a[]")] {
                        let _ = mapping.frames(pair[1], method, place, params);
                    }
                }
            }
        }
    });
}
