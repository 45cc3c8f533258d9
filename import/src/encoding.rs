//! Detects and converts the encoding of texts.
//!
//! Windows editors and shells write UTF-16, and a byte order mark before UTF-8. A text without a mark is read as UTF-8.

use std::io::{self, Read, Write};

/// The byte order of a text in UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Utf16 {
    Little,
    Big,
}

impl Utf16 {
    /// Returns the byte order of a text with these first bytes, if they are a byte order mark of UTF-16.
    pub(crate) fn of_start(start: &[u8]) -> Option<Self> {
        match start {
            // The mark of UTF-32 begins with that of UTF-16.
            [0xff, 0xfe, 0, 0, ..] => None,
            [0xff, 0xfe, ..] => Some(Self::Little),
            [0xfe, 0xff, ..] => Some(Self::Big),
            _ => None,
        }
    }

    fn unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }
}

/// Converts a text from UTF-16 to UTF-8, without its byte order mark. Invalid characters are replaced.
pub(crate) fn to_utf8(
    source: &mut dyn Read,
    order: Utf16,
    target: &mut dyn Write,
) -> io::Result<()> {
    let mut source = io::BufReader::new(source).bytes();
    let mut failed = None;
    let units = std::iter::from_fn(|| {
        let mut byte = || source.next().transpose();
        match (byte(), byte()) {
            (Ok(Some(first)), Ok(Some(second))) => Some(order.unit([first, second])),
            // An incomplete code unit at the end is dropped.
            (Ok(_), Ok(_)) => None,
            (Err(error), _) | (_, Err(error)) => {
                failed = Some(error);
                None
            }
        }
    });
    let mut target = io::BufWriter::new(target);
    let mut bytes = [0; 4];
    for (at, decoded) in char::decode_utf16(units).enumerate() {
        let character = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
        if at > 0 || character != '\u{feff}' {
            target.write_all(character.encode_utf8(&mut bytes).as_bytes())?;
        }
    }
    target.flush()?;
    drop(target);
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_both_orders_are_the_same_text() {
        let text = "\u{feff}main;caf\u{e9};\u{1d11e} 3\r\n";
        for order in [Utf16::Little, Utf16::Big] {
            let bytes = |unit: u16| match order {
                Utf16::Little => unit.to_le_bytes(),
                Utf16::Big => unit.to_be_bytes(),
            };
            let mut encoded: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
            assert_eq!(Utf16::of_start(&encoded), Some(order));
            // A lone surrogate, and half a code unit.
            encoded.extend(bytes(0xd834));
            encoded.push(1);
            let mut decoded = Vec::new();
            to_utf8(&mut &encoded[..], order, &mut decoded).unwrap();
            let expected = text.trim_start_matches('\u{feff}').to_owned() + "\u{fffd}";
            assert_eq!(String::from_utf8(decoded).unwrap(), expected);
        }
        for start in [
            &b"main"[..],
            &[0xff],
            &[0xff, 0xfe, 0, 0],
            &[0xef, 0xbb, 0xbf],
        ] {
            assert_eq!(Utf16::of_start(start), None);
        }
    }
}
