//! Splits a source file into printable lines.

use varid_recording::terminal::one_line;

/// Larger files are not read.
pub const MAX_SOURCE: u64 = 1 << 24;
/// The longest line in characters.
const LONGEST: usize = 400;
/// Columns between tab stops.
const TAB: usize = 8;

/// The text of a source file, split into printable lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    text: String,
    /// Start and end of each line.
    lines: Vec<(usize, usize)>,
}

impl SourceText {
    /// Makes the text from the bytes of a file. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    ///
    /// The file is not text.
    pub fn new(bytes: &[u8]) -> Result<Self, String> {
        if bytes.contains(&0) {
            return Err("is no text: it has zero bytes".to_owned());
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut lines = Vec::new();
        let mut start = 0usize;
        for line in text.split_inclusive('\n') {
            let end = start.saturating_add(line.len());
            lines.push((start, end));
            start = end;
        }
        Ok(Self { text, lines })
    }

    /// The number of lines.
    pub fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// Returns a line by its number, from 1: without its line end, with spaces for tabs, and `?` for control characters.
    pub fn line(&self, number: u32) -> Option<String> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let (start, end) = *self.lines.get(index)?;
        let line = self.text.get(start..end)?.trim_end_matches(['\n', '\r']);
        let mut shown = String::new();
        let mut columns = 0usize;
        for character in line.chars() {
            if columns >= LONGEST {
                shown.push_str("..");
                break;
            }
            let width = match character {
                '\t' => TAB.saturating_sub(columns % TAB),
                _ => 1,
            };
            match character {
                '\t' => shown.extend(std::iter::repeat_n(' ', width)),
                other => shown.push(other),
            }
            columns = columns.saturating_add(width);
        }
        Some(one_line(shown.trim_end()))
    }

    /// Returns true if the file declares this package of Java or Kotlin.
    pub fn belongs_to_package(&self, package: &str) -> bool {
        self.text.lines().any(|line| {
            let named = line.trim_start().strip_prefix("package ");
            named.is_some_and(|name| name.trim().trim_end_matches(';').trim_end() == package)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_printed_as_text_whatever_is_in_them() {
        let long = "x".repeat(100_000);
        let text = format!("a\x1b[2J\r\n\tif (x)\n\u{202e}b\n{long}");
        let source = SourceText::new(text.as_bytes()).unwrap();
        assert_eq!(source.len(), 4);
        let lines: Vec<_> = (0..6).map(|number| source.line(number)).collect();
        assert_eq!(lines[0], None);
        assert_eq!(lines[1].as_deref(), Some("a?[2J"));
        assert_eq!(lines[2].as_deref(), Some("        if (x)"));
        assert_eq!(lines[3].as_deref(), Some("?b"));
        assert_eq!(lines[4].as_ref().map(String::len), Some(LONGEST + 2));
        assert_eq!(lines[5], None);
        assert!(SourceText::new(b"\x7fELF\0\0").is_err());
        assert_eq!(
            SourceText::new(b"\xff\xfe").unwrap().line(1).unwrap(),
            "\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn a_package_is_the_whole_name_of_its_statement() {
        let source = SourceText::new(b"// x\npackage org.example ;\nclass A {}").unwrap();
        assert!(source.belongs_to_package("org.example"));
        assert!(!source.belongs_to_package("org"));
    }
}
