//! The formats of sources, and their detection.

use crate::{folded_line, other_format, script_samples::is_script};

/// A format that is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFormat {
    /// perf.data of perf or simpleperf: a file, or the output of `perf record -o -`.
    PerfData,
    /// The output of `perf script`.
    PerfScript,
    /// Folded stacks: one line for each stack, as written by stackcollapse scripts and async-profiler.
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

    /// Detects the format of content with this beginning. None if it has no known format.
    #[must_use]
    pub fn detect(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
            return Some(Self::PerfData);
        }
        if start.contains(&0) {
            return None;
        }
        let text = String::from_utf8_lossy(start);
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or(&*text, |end| text.split_at(end).0);
        let whole = whole.trim_start_matches('\u{feff}');
        if is_script(whole) {
            return Some(Self::PerfScript);
        }
        if other_format::of_start(start).is_some() {
            return None;
        }
        let lines = whole
            .lines()
            .filter(|line| !line.trim().is_empty() && !folded_line::is_comment(line));
        let (likely, others): (Vec<_>, Vec<_>) =
            lines.partition(|line| folded_line::is_likely(line));
        // Without a caller in any line, sentences that end in a number would look like stacks.
        let has_stack = likely.iter().any(|line| line.contains(';'));
        let is_word =
            |line: &&str| folded_line::split(line).is_some_and(|(stack, _)| !stack.contains(' '));
        let is_likely = has_stack || likely.iter().all(is_word);
        (is_likely && likely.len() > others.len()).then_some(Self::Folded)
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
            (b"\xef\xbb\xbfw 5/5 1.000000: cycles:\n\t1000 a (/x)\n", Some(SourceFormat::PerfScript)),
            (
                b"java 12 cpu-clock:\n\t4005 work (/bin/a)\n",
                Some(SourceFormat::PerfScript),
            ),
            (b"main;f 3\nodd\nmain;g 2\n", Some(SourceFormat::Folded)),
            // Many files have a line or two that end in a number.
            (b"hello there\nworld 3\n", None),
            (b"version = 3\n\n[[package]]\nname = \"a\"\nchapter 12\n", None),
            (b"the worker took 12\nthe other one 15\n", None),
            (b"Note 12 items:\nand more\n", None),
            (b"\x7fELF\x02\x01", None),
            (b"", None),
        ] {
            assert_eq!(SourceFormat::detect(start), format, "{start:?}");
        }
    }
}
