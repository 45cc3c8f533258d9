//! Which line of the source is an instruction of?

use super::ids::Bci;
use super::numbers::Numbers;
use crate::hotspot::unexported::Unsigned5;

/// The byte that ends a table.
const END: u8 = 0;
/// The byte before an entry that does not fit into a byte.
const ESCAPE: u8 = 0xff;
/// The bits of a line's distance in an entry of a byte.
const LINE_BITS: u32 = 3;

/// The lines of a method.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineTable {
    /// In the order of the table, which is that of the class file.
    entries: Box<[LineEntry]>,
}

/// The start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineEntry {
    /// Its first instruction.
    pub start: Bci,
    /// The line.
    pub line: u16,
}

impl LineTable {
    /// Reads a compressed table (oops/method.cpp, `CompressedLineNumberReadStream`). It ends with the bytes, too: what is not read is
    /// not known.
    pub(super) fn parse(bytes: &[u8], encoding: Unsigned5) -> Self {
        let mut numbers = Numbers::new(bytes, encoding);
        let (mut bci, mut line) = (0_i32, 0_i32);
        let mut entries = Vec::new();
        while let Some((further, down)) = distance(&mut numbers) {
            bci = bci.wrapping_add(further);
            line = line.wrapping_add(down);
            let (Ok(start), Ok(line)) = (u16::try_from(bci), u16::try_from(line)) else {
                break;
            };
            let start = Bci::new(start);
            entries.push(LineEntry { start, line });
        }
        Self {
            entries: entries.into(),
        }
    }

    /// Returns the line of an instruction. None if the table does not have it.
    pub fn line(&self, bci: Bci) -> Option<u16> {
        let mut entries = self.entries.iter();
        // As in `Method::line_number_from_bci`: the first one at the instruction, or the last one of those that are nearest.
        let exact = entries.clone().find(|entry| entry.start == bci);
        let before = || {
            let before = entries.by_ref().filter(|entry| entry.start < bci);
            before.max_by_key(|entry| entry.start)
        };
        exact.or_else(before).map(|entry| entry.line)
    }

    /// The starts of lines.
    pub fn entries(&self) -> &[LineEntry] {
        &self.entries
    }
}

/// Reads the distance to the next entry: in bytecode, and in lines.
fn distance(numbers: &mut Numbers<'_>) -> Option<(i32, i32)> {
    match numbers.byte()? {
        END => None,
        ESCAPE => Some((numbers.signed()?, numbers.signed()?)),
        byte => {
            let line = byte & ((1 << LINE_BITS) - 1);
            Some((i32::from(byte >> LINE_BITS), i32::from(line)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(bytes: &[u8]) -> LineTable {
        LineTable::parse(bytes, Unsigned5::WithZero)
    }

    fn lines(table: &LineTable, bcis: &[u16]) -> Vec<Option<u16>> {
        let lines = bcis.iter().map(|bci| table.line(Bci::new(*bci)));
        lines.collect()
    }

    #[test]
    fn a_line_lasts_until_the_next_one_starts() {
        // Line 100 at 0 (escape: 0, 100), 101 at 4, and back to line 99 at 13 (escape: 9, -2).
        let table = table(&[ESCAPE, 0, 200, 0, 4 << 3 | 1, ESCAPE, 18, 3, END, 9]);
        assert_eq!(table.entries().len(), 3);
        let found = lines(&table, &[0, 3, 4, 12, 13, 500]);
        let known = [100, 100, 101, 101, 99, 99].map(Some);
        assert_eq!(found, known);
    }

    #[test]
    fn entries_may_be_out_of_order() {
        // Line 7 at 8, then line 14 at 2 (escape: -6, +7), then line 15 at 2, too.
        let table = table(&[8 << 3 | 7, ESCAPE, 11, 14, 1, END]);
        assert_eq!(
            lines(&table, &[1, 2, 7, 8]),
            [None, Some(14), Some(15), Some(7)]
        );
    }

    #[test]
    fn a_table_ends_where_it_is_wrong() {
        assert_eq!(table(&[]), LineTable::default());
        assert_eq!(table(&[END]), LineTable::default());
        // Without its end, and within an entry.
        assert_eq!(table(&[8 << 3 | 7]).entries().len(), 1);
        assert_eq!(table(&[8 << 3 | 7, ESCAPE, 255]).entries().len(), 1);
        // Before the first instruction, and line -1.
        assert_eq!(table(&[ESCAPE, 3, 0]), LineTable::default());
        assert_eq!(table(&[ESCAPE, 0, 1]), LineTable::default());
    }
}
