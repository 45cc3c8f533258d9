//! A table, ready to be written in one format.

use std::{borrow::Cow, fmt, io};

use serde::{Serialize, Serializer, ser::SerializeSeq};

use crate::{
    columns::{Column, ColumnName, OutputFormat, Value, serialize_present},
    scope::Scope,
};

/// A table, ready to be written in one format. In JSON it is a list of objects.
#[derive(Debug)]
pub struct Sheet<'s> {
    /// Determines its key in JSON.
    pub role: SheetRole,
    /// Text before the table. Text only.
    pub intro: Option<&'static str>,
    /// Text that replaces the table. Text only.
    pub replacement: Option<String>,
    /// The columns' names.
    pub header: Vec<ColumnName>,
    /// Columns that show `-` for a missing or empty value.
    pub dashes: Vec<bool>,
    pub lines: Vec<SheetLine<'s>>,
    /// Label of the line that stands for the folded rows. Text only.
    pub folded: Option<String>,
    /// Number of rows hidden by the view's limits.
    pub hidden: usize,
    /// Width of the terminal in columns. Text only.
    pub width: Option<usize>,
}

/// Index at which additional columns are inserted.
const fn inserted_at(columns: usize, format: OutputFormat) -> usize {
    match format {
        OutputFormat::Text => 0,
        OutputFormat::Json | OutputFormat::Csv => columns,
    }
}

/// The role of a sheet in a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SheetRole {
    /// The images of an overview.
    Images,
    /// The rows of the view. CSV has only this sheet.
    Rows,
    /// Additional information for text. JSON omits it.
    TextOnly,
}

/// A line of a sheet.
#[derive(Debug)]
pub enum SheetLine<'s> {
    Cells(Vec<Value<'s>>),
    /// A separator between groups of rows. Text only.
    Rule,
    /// Any number of lines that are not kept in memory.
    Deferred(Box<dyn DeferredLines + 's>),
}

/// Takes the cells of a line, or None for a [`SheetLine::Rule`].
pub type TakeLine<'t> = dyn FnMut(Option<&[Value<'_>]>) -> io::Result<()> + 't;

/// Lines that are made each time when they are written, because there may be millions.
pub trait DeferredLines: fmt::Debug {
    /// Makes the lines in order. Each time they are the same.
    ///
    /// # Errors
    ///
    /// The first error of `take`, after which no more lines are made.
    fn each(&self, take: &mut TakeLine<'_>) -> io::Result<()>;
}

impl<'s> Sheet<'s> {
    /// Makes a sheet with the columns of a format and without rows.
    pub fn new<R>(role: SheetRole, columns: &[Column<'_, R>], format: OutputFormat) -> Self {
        let named = columns.iter().filter_map(|column| column.name(format));
        Self {
            role,
            intro: None,
            replacement: None,
            header: named.cloned().collect(),
            dashes: columns.iter().map(Column::has_dash).collect(),
            lines: Vec::new(),
            folded: None,
            hidden: 0,
            width: None,
        }
    }

    /// Makes a sheet without columns and rows.
    pub fn without_columns(role: SheetRole) -> Self {
        Self::new::<()>(role, &[], OutputFormat::default())
    }

    /// Inserts columns that only this table has: before the others in text, after them in JSON and CSV.
    pub fn insert_columns(&mut self, names: Vec<Cow<'static, str>>, format: OutputFormat) {
        let place = inserted_at(self.header.len(), format);
        self.dashes.splice(place..place, names.iter().map(|_| true));
        self.header.splice(place..place, names);
    }

    /// Adds a row with the values of the inserted columns.
    pub fn push_with<'p: 's, R>(
        &mut self,
        columns: &[Column<'p, R>],
        scope: &Scope<'p>,
        row: &R,
        inserted: Vec<Value<'p>>,
        format: OutputFormat,
    ) {
        let values = columns.iter().map(|column| column.value(scope, row));
        let mut values: Vec<_> = values.collect();
        let place = inserted_at(values.len(), format);
        values.splice(place..place, inserted);
        self.lines.push(SheetLine::Cells(values));
    }

    /// Adds a row.
    pub fn push<'p: 's, R>(&mut self, columns: &[Column<'p, R>], scope: &Scope<'p>, row: &R) {
        let values = columns.iter().map(|column| column.value(scope, row));
        self.lines.push(SheetLine::Cells(values.collect()));
    }

    /// Passes all lines to `take`, in order.
    ///
    /// # Errors
    ///
    /// The first error of `take`, which gets no more lines.
    pub fn each_line(&self, take: &mut TakeLine<'_>) -> io::Result<()> {
        for line in &self.lines {
            match line {
                SheetLine::Cells(cells) => take(Some(cells))?,
                SheetLine::Rule => take(None)?,
                SheetLine::Deferred(lines) => lines.each(take)?,
            }
        }
        Ok(())
    }
}

/// The cells of one row after the other.
pub struct Cells<'s, 'p, R> {
    scope: &'s Scope<'p>,
    columns: Vec<Column<'p, R>>,
    values: Vec<Value<'p>>,
}

impl<'s, 'p, R> Cells<'s, 'p, R> {
    /// Takes the columns in the order of the sheet.
    pub const fn new(scope: &'s Scope<'p>, columns: Vec<Column<'p, R>>) -> Self {
        let values = Vec::new();
        Self {
            scope,
            columns,
            values,
        }
    }

    /// Returns the cells of a row, which replace those of the previous one.
    pub fn of(&mut self, row: &R) -> &[Value<'p>] {
        self.with(row, [])
    }

    /// Like [`Cells::of`], followed by further cells.
    pub fn with(&mut self, row: &R, further: impl IntoIterator<Item = Value<'p>>) -> &[Value<'p>] {
        let values = self
            .columns
            .iter()
            .map(|column| column.value(self.scope, row));
        self.values.clear();
        self.values.extend(values.chain(further));
        &self.values
    }
}

/// The rows as a list of objects.
impl Serialize for Sheet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut result = Ok(());
        // The serializer's error must not become an `io::Error`: it tells a closed pipe from others.
        let _stopped = self.each_line(&mut |cells| {
            let Some(cells) = cells else { return Ok(()) };
            result = list.serialize_element(&RowObject {
                header: &self.header,
                cells,
            });
            match result {
                Ok(()) => Ok(()),
                Err(_) => Err(io::ErrorKind::Other.into()),
            }
        });
        result?;
        list.end()
    }
}

/// A row as an object.
struct RowObject<'r> {
    header: &'r [ColumnName],
    cells: &'r [Value<'r>],
}

impl Serialize for RowObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_present(self.header.iter().zip(self.cells), serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of lines, and a rule after them.
    #[derive(Debug)]
    struct Numbers(u64);

    impl DeferredLines for Numbers {
        fn each(&self, take: &mut TakeLine<'_>) -> io::Result<()> {
            for number in 0..self.0 {
                take(Some(&[Value::Count(number)]))?;
            }
            take(None)
        }
    }

    fn sheet() -> Sheet<'static> {
        let cells = |value| SheetLine::Cells(vec![value]);
        Sheet {
            header: vec!["n".into()],
            lines: vec![
                cells(Value::Count(7)),
                SheetLine::Deferred(Box::new(Numbers(2))),
                cells(Value::Absent),
            ],
            ..Sheet::without_columns(SheetRole::Rows)
        }
    }

    #[test]
    fn rows_and_deferred_lines_are_a_list_of_objects_in_order() {
        let json = serde_json::to_string(&sheet()).unwrap();
        assert_eq!(json, r#"[{"n":7},{"n":0},{"n":1},{}]"#);
    }

    #[test]
    fn no_line_is_made_after_an_error_and_a_closed_pipe_stays_one() {
        struct Closed;
        impl io::Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let sheet = Sheet {
            lines: vec![SheetLine::Deferred(Box::new(Numbers(u64::MAX)))],
            ..sheet()
        };
        let error = serde_json::to_writer(Closed, &sheet).unwrap_err();
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::BrokenPipe);
        let mut taken = 0;
        let stopped = sheet.each_line(&mut |_| {
            taken += 1;
            match taken {
                3 => Err(io::ErrorKind::BrokenPipe.into()),
                _ => Ok(()),
            }
        });
        assert!(stopped.is_err());
        assert_eq!(taken, 3);
    }
}
