//! Which format does a source have?

use crate::{folded_line, script_line};

/// A format that is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFormat {
    /// perf.data of perf or simpleperf, a file or what `perf record -o -` writes.
    PerfData,
    /// What `perf script` prints.
    PerfScript,
    /// Folded stacks: a line for each stack, as stackcollapse scripts and async-profiler write them.
    Folded,
}

impl SourceFormat {
    /// Its name on the command line and in the manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerfData => "perf-data",
            Self::PerfScript => "perf-script",
            Self::Folded => "folded",
        }
    }

    /// The format of what starts with these bytes; none if it has none of them.
    #[must_use]
    pub fn detect(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
            return Some(Self::PerfData);
        }
        let text = String::from_utf8_lossy(start);
        // The last line may be cut.
        let whole = text.rfind('\n').map_or(&*text, |end| text.split_at(end).0);
        let lines = whole
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        for line in lines.take(16) {
            if script_line::is_head(line) {
                return Some(Self::PerfScript);
            }
            if folded_line::split(line).is_some() {
                return Some(Self::Folded);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_its_content() {
        for (start, format) in [
            (&b"PERFILE2\x68\0"[..], Some(SourceFormat::PerfData)),
            (
                b"# header\nprog 12/13 [001]  5.123456:   1 cycles:u: \n\t  4005 main+0x5 (/bin/a)\n",
                Some(SourceFormat::PerfScript),
            ),
            (
                b"some prog   12  5.123456: cpu-clock: \n\t  4005 main (/bin/a)\n",
                Some(SourceFormat::PerfScript),
            ),
            (b"main;f;g_[k] 12\nmain;h 3\n", Some(SourceFormat::Folded)),
            (b"main 12", Some(SourceFormat::Folded)),
            (b"hello there\nworld\n", None),
            (b"\x7fELF\x02\x01", None),
            (b"", None),
        ] {
            assert_eq!(SourceFormat::detect(start), format, "{start:?}");
        }
    }
}
