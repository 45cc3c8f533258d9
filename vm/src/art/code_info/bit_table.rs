//! ART's tables of small numbers: packed bit by bit, with each column as wide as its largest number needs.
//!
//! Source: libartbase/base/bit_memory_region.h and bit_table.h of ART 11. Positions and widths are in bits. Positions count from the
//! buffer's start.

use super::CodeInfoError;

/// A larger number of four bits stands for a number of one to four bytes.
const LARGEST_SHORT: u32 = 11;
/// The widest column of numbers. Columns of bitmaps may be wider.
const LARGEST_WIDTH: u32 = 32;

/// Reads a buffer from its lowest bit on.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    position: u64,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8], position: u64) -> Self {
        Self { bytes, position }
    }

    /// The position of the next read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns a reader of the same buffer at another position.
    pub(super) fn at(&self, position: u64) -> Self {
        Self::new(self.bytes, position)
    }

    /// Advances past the next bits, which must be in the buffer. Returns the position of the first one.
    fn skip(&mut self, bits: u64) -> Result<u64, CodeInfoError> {
        let start = self.position;
        let end = start.saturating_add(bits);
        let needed = end.div_ceil(8);
        if needed > self.bytes.len() as u64 {
            return Err(CodeInfoError::CutShort { needed });
        }
        self.position = end;
        Ok(start)
    }

    /// Reads the next number, of at most 32 bits.
    fn number(&mut self, bits: u32) -> Result<u32, CodeInfoError> {
        let start = self.skip(bits.into())?;
        Ok(number(self.bytes, start, bits))
    }

    /// Reads the first half of a number of variable length.
    fn short(&mut self) -> Result<u32, CodeInfoError> {
        self.number(4)
    }

    /// Reads the rest of a number of variable length, given its first half.
    fn long(&mut self, short: u32) -> Result<u32, CodeInfoError> {
        match short.checked_sub(LARGEST_SHORT) {
            Some(bytes @ 1..) => self.number(bytes.saturating_mul(8)),
            _ => Ok(short),
        }
    }

    /// Reads numbers of variable length: the first halves of all of them, then the rest of those that are long.
    pub(super) fn header<const N: usize>(&mut self) -> Result<[u32; N], CodeInfoError> {
        let mut values = [0; N];
        for value in &mut values {
            *value = self.short()?;
        }
        for value in &mut values {
            *value = self.long(*value)?;
        }
        Ok(values)
    }
}

/// Returns the number in at most 32 bits, which must be in the buffer.
fn number(bytes: &[u8], position: u64, bits: u32) -> u32 {
    let first = usize::try_from(position >> 3).unwrap_or(usize::MAX);
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.get(first..).unwrap_or_default()) {
        *to = *from;
    }
    let mask = !u64::MAX.checked_shl(bits).unwrap_or_default();
    ((u64::from_le_bytes(word) >> (position & 7)) & mask) as u32
}

/// Rows of `N` numbers, each of which may be missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitTable<'a, const N: usize> {
    bytes: &'a [u8],
    start: u64,
    rows: u32,
    row_width: u64,
    columns: [Column; N],
}

/// The position of a column's number in each row.
#[derive(Debug, Clone, Copy)]
struct Column {
    offset: u64,
    width: u32,
}

impl<'a, const N: usize> BitTable<'a, N> {
    const NO_COLUMN: Column = Column {
        offset: 0,
        width: 0,
    };

    /// A table without rows.
    pub(super) const EMPTY: Self = Self {
        bytes: &[],
        start: 0,
        rows: 0,
        row_width: 0,
        columns: [Self::NO_COLUMN; N],
    };

    /// Reads the next table: the number of rows, the width of each column, then the rows.
    pub(super) fn read(reader: &mut BitReader<'a>) -> Result<Self, CodeInfoError> {
        let rows = reader.short()?;
        let mut columns = [Self::NO_COLUMN; N];
        for column in &mut columns {
            column.width = reader.short()?;
        }
        let rows = reader.long(rows)?;
        let mut row_width = 0u64;
        for column in &mut columns {
            column.width = reader.long(column.width)?;
            column.offset = row_width;
            row_width = row_width.saturating_add(column.width.into());
        }
        Ok(Self {
            bytes: reader.bytes,
            start: reader.skip(row_width.saturating_mul(rows.into()))?,
            rows,
            row_width,
            columns,
        })
    }

    /// Returns the table if its columns can be numbers and its rows are not empty.
    pub(super) fn of_numbers(self) -> Result<Self, CodeInfoError> {
        let is_number = |column: &Column| column.width <= LARGEST_WIDTH;
        let problem = if !self.columns.iter().all(is_number) {
            "a column of numbers of more than 32 bits"
        } else if self.rows != 0 && self.row_width == 0 {
            "rows that hold nothing"
        } else {
            return Ok(self);
        };
        Err(CodeInfoError::Broken {
            position: self.start,
            problem,
        })
    }

    /// The position of its rows.
    pub(super) fn position(&self) -> u64 {
        self.start
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns a number. A missing number is stored as zero, all others as their value plus one. None also if there is no such row or
    /// column.
    pub(super) fn get(&self, row: u32, column: usize) -> Option<u32> {
        let column = self.columns.get(column)?;
        if row >= self.rows {
            return None;
        }
        let offset = self.row_width.saturating_mul(row.into());
        let position = self
            .start
            .saturating_add(offset)
            .saturating_add(column.offset);
        number(self.bytes, position, column.width).checked_sub(1)
    }

    /// Returns the first row for which `is_before` is false. It must be true for all rows before that one, and false for all after it.
    pub(super) fn partition_point(&self, is_before: impl Fn(u32) -> bool) -> u32 {
        let (mut low, mut high) = (0u32, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(middle) {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Writes what the reader reads: numbers and how many bits each has.
    pub(in super::super) fn bits(numbers: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut position = 0usize;
        for &(value, width) in numbers {
            for bit in 0..width {
                bytes.resize(position / 8 + 1, 0);
                bytes[position / 8] |= ((value >> bit & 1) as u8) << (position % 8);
                position += 1;
            }
        }
        bytes
    }

    #[test]
    fn a_long_number_follows_all_short_ones() {
        let bytes = bits(&[
            (11, 4),
            (12, 4),
            (15, 4),
            (0, 4),
            (200, 8),
            (0xdead_beef, 32),
        ]);
        let mut reader = BitReader::new(&bytes, 0);
        let found: [u32; 4] = reader.header().unwrap();
        assert_eq!(found, [11, 200, 0xdead_beef, 0]);
        assert_eq!(reader.position(), 56);
        let cut = CodeInfoError::CutShort { needed: 7 };
        assert_eq!(BitReader::new(&bytes[..6], 0).header::<4>(), Err(cut));
    }

    #[test]
    fn a_number_is_stored_plus_one_and_none_as_zero() {
        // Three rows; the columns have 3, 0 and 32 bits.
        let bytes = bits(&[
            (1, 1), // Not at a byte's start.
            (3, 4),
            (3, 4),
            (0, 4),
            (12, 4),
            (32, 8),
            (0, 3),
            (0xffff_ffff, 32),
            (7, 3),
            (0, 32),
            (1, 3),
            (1, 32),
        ]);
        let mut reader = BitReader::new(&bytes, 1);
        let table = BitTable::<3>::read(&mut reader).unwrap();
        assert_eq!(reader.position(), 1 + 24 + 3 * 35);
        assert!(table.of_numbers().is_ok());
        let rows: Vec<_> = (0..4)
            .map(|row| [0, 1, 2, 3].map(|column| table.get(row, column)))
            .collect();
        assert_eq!(
            rows,
            [
                [None, None, Some(0xffff_fffe), None],
                [Some(6), None, None, None],
                [Some(0), None, Some(0), None],
                [None; 4]
            ]
        );
    }

    #[test]
    fn rows_without_bits_and_columns_that_are_no_numbers_are_refused() {
        for header in [[15, 0], [1, 12]] {
            let bytes = bits(&[(header[0], 4), (header[1], 4), (0x21, 32), (0, 32)]);
            let table = BitTable::<1>::read(&mut BitReader::new(&bytes, 0)).unwrap();
            let refused = table.of_numbers();
            assert!(
                matches!(refused, Err(CodeInfoError::Broken { .. })),
                "{refused:?}"
            );
        }
    }
}
