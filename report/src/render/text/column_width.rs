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
