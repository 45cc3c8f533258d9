//! The first bytes of a source, from which its format is detected.

use std::borrow::Cow;

/// The number of bytes that suffice to detect a format.
pub(crate) const LEN: u64 = 64 << 10;

/// The first bytes of a source.
#[derive(Debug)]
pub(crate) struct SourceStart<'a> {
    bytes: &'a [u8],
    /// The bytes as text. None if they contain a zero byte.
    text: Option<Cow<'a, str>>,
}

impl<'a> SourceStart<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let is_text = !bytes.contains(&0);
        let text = is_text.then(|| String::from_utf8_lossy(bytes));
        Self { bytes, text }
    }

    /// Returns the bytes.
    pub(crate) const fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Returns the complete lines without a byte order mark. None if the bytes are not text.
    pub(crate) fn lines(&self) -> Option<&str> {
        let text = self.text.as_deref()?;
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or(text, |end| text.split_at(end).0);
        Some(whole.trim_start_matches('\u{feff}'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_last_line_is_left_out_unless_it_is_the_only_one() {
        let lines = |bytes: &[u8]| SourceStart::new(bytes).lines().map(str::to_owned);
        assert_eq!(
            lines(b"\xef\xbb\xbfa 1\nb 2\nc").as_deref(),
            Some("a 1\nb 2")
        );
        assert_eq!(lines(b"a 1").as_deref(), Some("a 1"));
        assert_eq!(lines(b"a 1\n\0"), None);
    }
}
