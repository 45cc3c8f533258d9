//! Decodes modified UTF-8.

/// Decodes a modified UTF-8 string (two-byte NUL, surrogates encoded one by one).
///
/// Invalid parts become U+FFFD, so that a name with one broken character is still a name.
pub fn decode(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    char::decode_utf16(Units { bytes })
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// The UTF-16 code units of a modified UTF-8 string.
struct Units<'a> {
    bytes: &'a [u8],
}

impl Iterator for Units<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        let tail = |byte: u8| (byte & 0xc0 == 0x80).then_some(u16::from(byte & 0x3f));
        let (unit, rest) = match *self.bytes {
            [] => return None,
            [a, ref rest @ ..] if a < 0x80 => (Some(u16::from(a)), rest),
            [a, b, ref rest @ ..] if a & 0xe0 == 0xc0 && tail(b).is_some() => {
                (tail(b).map(|b| u16::from(a & 0x1f) << 6 | b), rest)
            }
            [a, b, c, ref rest @ ..]
                if a & 0xf0 == 0xe0 && tail(b).is_some() && tail(c).is_some() =>
            {
                let unit = tail(b)
                    .zip(tail(c))
                    .map(|(b, c)| u16::from(a & 0x0f) << 12 | b << 6 | c);
                (unit, rest)
            }
            [_, ref rest @ ..] => (None, rest),
        };
        self.bytes = rest;
        Some(unit.unwrap_or(0xfffd))
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn surrogates_nul_and_broken_bytes() {
        assert_eq!(decode(b"plain"), "plain");
        assert_eq!(decode("gr\u{fc}n\u{4e16}".as_bytes()), "gr\u{fc}n\u{4e16}");
        assert_eq!(decode(b"a\xc0\x80b"), "a\0b");
        assert_eq!(decode(b"\xed\xa0\xbd\xed\xb8\x80"), "\u{1f600}");
        assert_eq!(decode(b"\xed\xa0\xbdx"), "\u{fffd}x");
        assert_eq!(decode(b"\xffx\xe4"), "\u{fffd}x\u{fffd}");
    }
}
