//! The width of a column.

use crate::columns::Value;

/// The minimum width of a shortened column, so that numbers stay complete.
const NARROWEST: usize = 12;

/// The widths of a column's cells in characters.
///
/// Most cells are numbers. Only the largest and the smallest one are formatted, because no number between them is wider.
#[derive(Debug, Default)]
pub struct ColumnWidth {
    /// The widest text, or the label.
    text: usize,
    /// The widest text that must not be cut.
    whole: usize,
    largest_count: Option<u64>,
    /// The smallest and the largest percentage.
    percents: Option<(f64, f64)>,
}

impl ColumnWidth {
    /// Makes the width of a column that has only its label.
    pub fn new(label: &str) -> Self {
        Self {
            text: label.chars().count(),
            ..Self::default()
        }
    }

    /// Adds a cell.
    pub fn add(&mut self, value: &Value) {
        match value {
            Value::Count(count) => self.largest_count = self.largest_count.max(Some(*count)),
            Value::Percent(percent) | Value::Ratio(percent) => {
                let (smallest, largest) = self.percents.unwrap_or((*percent, *percent));
                self.percents = Some((smallest.min(*percent), largest.max(*percent)));
            }
            _ => {
                let width = width(value);
                self.text = self.text.max(width);
                let stem = value.stem();
                if stem == width {
                    self.whole = self.whole.max(stem);
                }
            }
        }
    }

    /// Returns the width of the widest cell.
    pub fn widest(&self) -> usize {
        let count = self.largest_count.map(Value::Count);
        let percents = self.percents.map(|(smallest, largest)| [smallest, largest]);
        let percents = percents.into_iter().flatten().map(Value::Percent);
        let numbers = percents.chain(count).map(|value| width(&value));
        numbers.fold(self.text, usize::max)
    }

    /// Returns the width below which the column is not shortened: cells that must not be cut determine it.
    pub fn narrowest(&self) -> usize {
        self.whole.max(NARROWEST)
    }
}

fn width(value: &Value) -> usize {
    value.cell(2).chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_numbers_is_as_wide_as_its_widest_formatted_number() {
        let cells: [&[Value]; 5] = [
            &[Value::Percent(9.994), Value::Percent(0.0)],
            &[Value::Percent(9.996), Value::Ratio(2.5)],
            &[Value::Percent(-10.0), Value::Percent(99.0), Value::Absent],
            &[Value::Count(99), Value::Count(100), Value::Count(7)],
            &[Value::Change(0.5), Value::Signed(-1234), "ä".into()],
        ];
        for cells in cells {
            let mut column = ColumnWidth::new("");
            cells.iter().for_each(|cell| column.add(cell));
            let widest = cells.iter().map(width).max();
            assert_eq!(Some(column.widest()), widest, "{cells:?}");
        }
        assert_eq!(ColumnWidth::new("label").widest(), 5);
    }

    #[test]
    fn only_a_cell_that_must_not_be_cut_widens_a_narrow_column() {
        let branch = |stem: &'static str, name: &'static str| Value::Branch {
            stem: stem.into(),
            name: name.into(),
        };
        let mut column = ColumnWidth::new("");
        column.add(&branch("a/long/file/name.c:12", "and more"));
        assert_eq!(column.narrowest(), NARROWEST);
        column.add(&branch("a/long/file/name.c:12", ""));
        assert_eq!(column.narrowest(), 21);
    }
}
