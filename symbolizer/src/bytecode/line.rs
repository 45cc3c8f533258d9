//! Rows of a line table: the source line of an instruction.

/// The source line of the instructions from this one up to the next row's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLine {
    /// Offset in the image of the first instruction.
    pub offset: u32,
    /// Line, from 1. Zero if the instructions have no line.
    pub line: u32,
    /// The source file, for [`super::BytecodeImage::line_source`]. None if it is not known.
    pub source: Option<u32>,
}

/// Returns the row for the instruction at `offset`. `offset_of` returns where a row begins. The rows are sorted by it.
///
/// As in ART: among several rows at exactly `offset`, the first one; among several rows before it, the last one.
pub(crate) fn row_at<T>(rows: &[T], offset: u32, offset_of: impl Fn(&T) -> u32) -> Option<&T> {
    let at = rows.partition_point(|row| offset_of(row) < offset);
    match rows.get(at) {
        Some(row) if offset_of(row) == offset => Some(row),
        _ => rows.get(at.checked_sub(1)?),
    }
}

#[cfg(test)]
mod tests {
    use super::row_at;

    #[test]
    fn the_instruction_itself_has_the_first_of_its_rows_and_what_follows_the_last() {
        let rows = [(4, 'a'), (4, 'b'), (8, 'c')];
        let at = |offset| row_at(&rows, offset, |row| row.0).map(|row| row.1);
        let found: Vec<_> = [3, 4, 5, 8, 9].map(at).into();
        assert_eq!(found, [None, Some('a'), Some('b'), Some('c'), Some('c')]);
    }
}
