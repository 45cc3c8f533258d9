//! Reads the lines of a text.

use std::{
    borrow::Cow,
    io::{self, BufRead},
};

/// The mark in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The lines of a text with their numbers from 1, without a byte order mark. Invalid UTF-8 is replaced. Lines longer than `max` bytes are
/// cut.
pub(crate) struct Lines<R> {
    reader: R,
    max: usize,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(reader: R, max: usize) -> Self {
        Self {
            reader,
            max,
            number: 0,
            line: Vec::new(),
        }
    }

    /// Returns the next line, and whether it is complete.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Cow<'_, str>, bool)>> {
        self.line.clear();
        self.number = self.number.saturating_add(1);
        let (mut read, mut whole) = (false, true);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            read = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = buffer
                .get(..end.unwrap_or(buffer.len()))
                .unwrap_or_default();
            let room = self.max.saturating_sub(self.line.len());
            whole &= part.len() <= room;
            self.line.extend(part.iter().take(room));
            let used = part.len().saturating_add(usize::from(end.is_some()));
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(read.then(|| {
            let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
            let line = match self.number {
                1 => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
                _ => line,
            };
            (self.number, String::from_utf8_lossy(line), whole)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let text: &[u8] = b"\xef\xbb\xbfab\r\n0123456789\n\nend";
        let mut lines = Lines::new(io::BufReader::with_capacity(3, text), 8);
        let mut found = Vec::new();
        while let Some((number, line, whole)) = lines.next().unwrap() {
            found.push((number, line.into_owned(), whole));
        }
        let expected = [
            (1, "ab", true),
            (2, "01234567", false),
            (3, "", true),
            (4, "end", true),
        ];
        assert_eq!(
            found,
            expected.map(|(n, line, whole)| (n, line.to_owned(), whole))
        );
    }
}
