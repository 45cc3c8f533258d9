//! Reads the functions in `/tmp/perf-PID.map`.
//!
//! Each line is `START SIZE NAME` with hexadecimal numbers. The name extends to the end of the line. The file has neither times nor an end:
//! producers append to it, or write it again from the start.

use super::{CodeMap, JitFunction, Replacement, shown};
use crate::Frame;

/// A perf map, up to the point to which it has been read.
#[derive(Debug, Clone, Default)]
pub struct PerfMap {
    map: CodeMap,
    /// Lines that are not `START SIZE NAME`.
    broken: usize,
}

impl PerfMap {
    /// Reads a whole map. Where entries overlap, the later line counts. A last line without a newline is not read, because its name may be
    /// incomplete.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        map.feed(bytes, 0);
        map
    }

    /// Reads what was appended since the last [`PerfMap::finish_listing`], or the rewritten map, as of `now`. The caller may split it into
    /// any number of pieces. Returns how many bytes were read, without those of an incomplete last line, and what was replaced.
    pub fn feed(&mut self, bytes: &[u8], now: u64) -> (usize, Vec<Replacement>) {
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |last| last.saturating_add(1));
        let lines = bytes.get(..whole).unwrap_or_default();
        let mut broken = 0usize;
        let codes = lines.split(|&byte| byte == b'\n').filter_map(|line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                return None;
            }
            let code = entry(line);
            broken = broken.saturating_add(usize::from(code.is_none()));
            // Labels have no size, so they have no code.
            code.filter(|code| !code.range.is_empty())
        });
        let replaced = self.map.appear(codes, now);
        self.broken = self.broken.saturating_add(broken);
        (whole, replaced)
    }

    /// Ends a listing: everything that the file contained at `time` has been fed.
    pub const fn finish_listing(&mut self, time: u64) {
        self.map.finish_listing(time);
    }

    /// The frame at an address at a time. For a map that was read as a whole, any time gives the same result.
    #[must_use]
    pub fn lookup(&self, time: u64, address: u64) -> Option<Frame<'_>> {
        self.map.frame(time, address)
    }

    /// The functions.
    #[must_use]
    pub const fn map(&self) -> &CodeMap {
        &self.map
    }

    /// Number of invalid lines.
    #[must_use]
    pub const fn broken(&self) -> usize {
        self.broken
    }
}

fn entry(line: &[u8]) -> Option<JitFunction> {
    let (start, rest) = word(line)?;
    let (size, rest) = word(rest)?;
    let (start, size) = (hex(start)?, hex(size)?);
    let name = rest.trim_ascii();
    if name.is_empty() {
        return None;
    }
    Some(JitFunction::new(
        start..start.checked_add(size)?,
        shown(name),
        0,
    ))
}

/// Splits off the first word.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace)?;
    text.split_at_checked(end)
}

fn hex(word: &[u8]) -> Option<u64> {
    let word = std::str::from_utf8(word).ok()?;
    let digits = word
        .strip_prefix("0x")
        .or_else(|| word.strip_prefix("0X"))
        .unwrap_or(word);
    // from_str_radix accepts a sign.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(map: &PerfMap, address: u64) -> Option<String> {
        map.lookup(0, address)
            .map(|frame| frame.function.into_owned())
    }

    #[test]
    fn what_producers_write_is_read() {
        let map = PerfMap::parse(
            b"7f53c67c5b80 100 JS:^fib /tmp/a folder/spin.js:1:13\n\
              0x2000 0x10 Ljava/lang/String;::hash()\r\n\
              1000 20 early\n\
              1010 8 later wins\n\
              3000 0 a label\n\
              \n  4000\t8\ttabs \xff\x07 odd bytes\n\
              5000 10 torn",
        );
        assert_eq!(
            name(&map, 0x7f53_c67c_5c7f).unwrap(),
            "JS:^fib /tmp/a folder/spin.js:1:13"
        );
        assert_eq!(name(&map, 0x7f53_c67c_5c80), None);
        assert_eq!(name(&map, 0x2000).unwrap(), "Ljava/lang/String;::hash()");
        assert_eq!(name(&map, 0x100f).unwrap(), "early");
        assert_eq!(name(&map, 0x1010).unwrap(), "later wins");
        assert_eq!(name(&map, 0x1018).unwrap(), "early");
        assert_eq!(name(&map, 0x3000), None);
        assert_eq!(name(&map, 0x4000).unwrap(), "tabs \u{fffd}? odd bytes");
        assert_eq!(name(&map, 0x5000), None, "a torn line is not read");
        assert_eq!(map.broken(), 0);
    }

    #[test]
    fn broken_lines_cost_only_themselves() {
        let map = PerfMap::parse(
            b"zz 10 x\n10\n10 20\n10 20 \n+10 8 sign\nffffffffffffffff 8 beyond\n\
              10000000000000000 8 too large\n20 10 right\n",
        );
        assert_eq!(map.broken(), 7);
        assert_eq!(name(&map, 0x2f).unwrap(), "right");
        assert_eq!(map.map().codes().len(), 1);
    }

    #[test]
    fn what_is_appended_has_the_name_from_then_on() {
        let mut map = PerfMap::default();
        assert_eq!(map.feed(b"80 10 stale\n", 50), (12, vec![]));
        // Within one listing, a later piece replaces an earlier one, as a later line does.
        assert_eq!(map.feed(b"80 10 right\n", 50), (12, vec![]));
        assert_eq!(map.feed(b"100 10 old\n200 10 ne", 50), (11, vec![]));
        map.finish_listing(50);
        assert_eq!(
            map.feed(b"200 10 new\n108 10 reused\n", 60).1,
            [Replacement {
                range: 0x108..0x118,
                from: 60
            }]
        );
        let at = |time, address| Some(map.lookup(time, address)?.function.into_owned());
        assert_eq!(at(49, 0x80).unwrap(), "right");
        assert_eq!(at(49, 0x108).unwrap(), "old");
        assert_eq!(at(55, 0x108), None);
        assert_eq!(at(60, 0x108).unwrap(), "reused");
        assert_eq!(at(0, 0x200).unwrap(), "new");
    }
}
