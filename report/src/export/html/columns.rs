//! Encodes the numbers of a page as columns of LEB128, where small numbers take one byte.

/// Concatenated columns, with the name and the number of values of each.
#[derive(Debug, Default)]
pub struct Columns {
    pub names: Vec<(&'static str, usize)>,
    pub bytes: Vec<u8>,
}

impl Columns {
    /// Adds a column.
    pub fn push(&mut self, name: &'static str, values: impl IntoIterator<Item = u64>) {
        let mut count = 0usize;
        for mut value in values {
            count = count.saturating_add(1);
            while value >= 0x80 {
                self.bytes.push(low_bits(value) | 0x80);
                value >>= 7;
            }
            self.bytes.push(low_bits(value));
        }
        self.names.push((name, count));
    }
}

fn low_bits(value: u64) -> u8 {
    u8::try_from(value & 0x7f).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Columns;

    #[test]
    fn numbers_are_leb128() {
        let mut columns = Columns::default();
        columns.push("a", [0, 127, 128, 624_485]);
        columns.push("b", [u64::MAX]);
        assert_eq!(columns.names, [("a", 4), ("b", 1)]);
        assert_eq!(columns.bytes[..7], [0, 127, 0x80, 1, 0xe5, 0x8e, 0x26]);
        assert_eq!(
            columns.bytes[7..],
            [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]
        );
    }
}
