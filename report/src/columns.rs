//! Describes the columns of a table once, for text, JSON and CSV.
//!
//! A view describes each [`Column`]: its name in each format that has it, and its value in a row. A
//! [`Sheet`](crate::sheet::Sheet) has the columns of one format and their values. The format writers see values only and
//! do not depend on views.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::scope::Scope;

/// The output format of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// For reading in a terminal.
    #[default]
    Text,
    /// For programs, according to `schema/report.schema.json`.
    Json,
    /// For spreadsheets: the rows with a header, according to RFC 4180.
    Csv,
}

/// The value of a column in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'p> {
    /// No value. JSON omits the key, other formats have an empty cell.
    Absent,
    Text(Cow<'p, str>),
    /// The name of a method or function. Text may shorten it to fit the terminal.
    Name(Cow<'p, str>),
    Count(u64),
    Signed(i64),
    /// Two decimals in text, six in JSON and CSV.
    Percent(f64),
    /// As a percentage.
    Ratio(f64),
    /// A difference. Text shows its sign.
    Change(f64),
    /// The p-value of a test. JSON and CSV only.
    Probability(f64),
    /// A name in a tree, with the connecting lines before it, which are never cut off. Text only.
    Branch {
        stem: Cow<'static, str>,
        name: Cow<'p, str>,
    },
    /// A flag that is set. A flag that is not set is [`Value::Absent`].
    True,
    /// JSON only.
    Object(Object<'p>),
    /// JSON only.
    List(Vec<Object<'p>>),
}

impl Value<'_> {
    /// Formats an address. In JSON it is a string, because programs lose the last digits of larger numbers.
    pub fn hex(address: u64) -> Self {
        Self::Text(format!("{address:#x}").into())
    }

    /// Formats the value for text and CSV with this number of decimals.
    pub fn cell(&self, decimals: usize) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Name(text) => text.as_ref().into(),
            _ => {
                let mut cell = String::new();
                self.append_to(&mut cell, decimals);
                cell.into()
            }
        }
    }

    /// Appends the formatted value to a cell.
    pub fn append_to(&self, cell: &mut String, decimals: usize) {
        let formatted = match self {
            Self::Absent | Self::Object(_) | Self::List(_) => Ok(()),
            Self::Text(text) | Self::Name(text) => cell.write_str(text),
            Self::Count(number) => write!(cell, "{number}"),
            Self::Signed(number) => write!(cell, "{number}"),
            Self::Percent(percent) | Self::Ratio(percent) => write!(cell, "{percent:.decimals$}"),
            Self::Change(change) => write!(cell, "{change:+.decimals$}"),
            Self::Probability(probability) => write!(cell, "{probability:e}"),
            Self::Branch { stem, name } => cell.write_str(stem).and_then(|()| cell.write_str(name)),
            Self::True => cell.write_str("true"),
        };
        debug_assert!(formatted.is_ok(), "strings grow as necessary");
    }

    /// Returns true if text shortens the value as a function name.
    pub const fn is_name(&self) -> bool {
        matches!(self, Self::Name(_) | Self::Branch { .. })
    }

    /// Number of characters at the start of the cell that are never cut off.
    pub fn stem(&self) -> usize {
        match self {
            Self::Branch { stem, .. } => stem.chars().count(),
            _ => 0,
        }
    }
}

impl<'p, T: Into<Value<'p>>> From<Option<T>> for Value<'p> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

impl<'p> From<&'p str> for Value<'p> {
    fn from(text: &'p str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<'p> From<Cow<'p, str>> for Value<'p> {
    fn from(text: Cow<'p, str>) -> Self {
        Self::Text(text)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Count(number.into())
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Count(number)
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_none(),
            Self::Text(text) | Self::Name(text) => serializer.serialize_str(text),
            Self::Count(number) => serializer.serialize_u64(*number),
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Percent(percent) | Self::Ratio(percent) | Self::Change(percent) => {
                serializer.serialize_f64(rounded(*percent))
            }
            Self::Probability(probability) => serializer.serialize_f64(*probability),
            Self::Branch { name, .. } => serializer.serialize_str(name),
            Self::True => serializer.serialize_bool(true),
            Self::Object(object) => object.serialize(serializer),
            Self::List(objects) => objects.serialize(serializer),
        }
    }
}

/// Formats a probability with two significant digits.
pub fn probability_text(probability: f64) -> String {
    match probability {
        probability if probability >= 0.001 => format!("{probability:.3}"),
        // The value is below the smallest `f64`.
        0.0 => "<1e-300".to_owned(),
        probability => format!("{probability:.0e}"),
    }
}

/// Rounds a percentage to six decimals.
pub fn rounded(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e6
}

/// A JSON object: the columns of a row that have a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<'p>(Vec<(ColumnName, Value<'p>)>);

impl<'p> Object<'p> {
    /// Evaluates the columns that JSON has.
    pub fn new<R>(columns: &[Column<'p, R>], scope: &Scope<'p>, row: &R) -> Self {
        let named = columns.iter().filter_map(|column| {
            let name = column.name(OutputFormat::Json)?;
            Some((name.clone(), column.value(scope, row)))
        });
        Self(named.collect())
    }

    /// Makes an object whose keys come from a recording.
    pub fn named(values: impl IntoIterator<Item = (ColumnName, Value<'p>)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// Makes an object from these values.
    pub fn of(values: impl IntoIterator<Item = (&'static str, Value<'p>)>) -> Self {
        Self(Vec::new()).with(values)
    }

    /// Appends these values.
    pub fn with(mut self, values: impl IntoIterator<Item = (&'static str, Value<'p>)>) -> Self {
        let values = values.into_iter();
        let values = values.map(|(name, value)| (Cow::Borrowed(name), value));
        self.0.extend(values);
        self
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_present(self.0.iter().map(|(name, value)| (name, value)), serializer)
    }
}

/// Serializes the columns of a row that have a value as an object.
pub fn serialize_present<'v, S: Serializer>(
    columns: impl Iterator<Item = (&'v ColumnName, &'v Value<'v>)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (name, value) in columns.filter(|(_, value)| **value != Value::Absent) {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// The name of a column or of a JSON key.
pub type ColumnName = Cow<'static, str>;

/// How a column gets its value from a row.
enum ColumnValue<'p, R> {
    OfRow(fn(&Scope<'p>, &R) -> Value<'p>),
    /// The value of a measure, given by its index among the shown measures.
    OfMeasure(fn(&Scope<'p>, &R, usize) -> Value<'p>, usize),
}

/// A column of a table whose rows are of type `R`.
pub struct Column<'p, R> {
    /// The name in each format. None if the format does not have the column.
    text: Option<ColumnName>,
    json: Option<ColumnName>,
    csv: Option<ColumnName>,
    /// Text shows `-` for a missing or empty value.
    dash: bool,
    value: ColumnValue<'p, R>,
}

impl<R> fmt::Debug for Column<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [&self.text, &self.json, &self.csv];
        f.debug_tuple("Column").field(&names).finish()
    }
}

impl<R> Clone for Column<'_, R> {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            json: self.json.clone(),
            csv: self.csv.clone(),
            dash: self.dash,
            value: match self.value {
                ColumnValue::OfRow(value) => ColumnValue::OfRow(value),
                ColumnValue::OfMeasure(value, place) => ColumnValue::OfMeasure(value, place),
            },
        }
    }
}

impl<'p, R> Column<'p, R> {
    /// Makes a column that is not yet in any format.
    pub const fn new(value: fn(&Scope<'p>, &R) -> Value<'p>) -> Self {
        Self::without_names(ColumnValue::OfRow(value))
    }

    /// Makes the column of a measure, given by its index among the shown measures.
    pub const fn of_measure(value: fn(&Scope<'p>, &R, usize) -> Value<'p>, place: usize) -> Self {
        Self::without_names(ColumnValue::OfMeasure(value, place))
    }

    const fn without_names(value: ColumnValue<'p, R>) -> Self {
        Self {
            text: None,
            json: None,
            csv: None,
            dash: false,
            value,
        }
    }

    /// Returns true if text shows `-` for a missing or empty value.
    pub const fn has_dash(&self) -> bool {
        self.dash
    }

    /// Returns its value in a row.
    pub fn value(&self, scope: &Scope<'p>, row: &R) -> Value<'p> {
        match self.value {
            ColumnValue::OfRow(value) => value(scope, row),
            ColumnValue::OfMeasure(value, place) => value(scope, row, place),
        }
    }

    /// Adds the column to text under this name.
    pub fn text(self, name: impl Into<ColumnName>) -> Self {
        let text = Some(name.into());
        Self { text, ..self }
    }

    /// Like [`Column::text`], but shows `-` for a missing value.
    pub fn text_or_dash(self, name: &'static str) -> Self {
        let dash = true;
        Self { dash, ..self }.text(name)
    }

    /// Adds the column to JSON under this name.
    pub fn json(self, name: impl Into<ColumnName>) -> Self {
        let json = Some(name.into());
        Self { json, ..self }
    }

    /// Adds the column to CSV under this name.
    pub fn csv(self, name: impl Into<ColumnName>) -> Self {
        let csv = Some(name.into());
        Self { csv, ..self }
    }

    /// Adds the column to JSON and CSV under this name.
    pub fn data(self, name: &'static str) -> Self {
        self.json(name).csv(name)
    }

    /// Removes the column from text.
    pub fn without_text(self) -> Self {
        let text = None;
        Self { text, ..self }
    }

    /// Returns the name in a format. None if the format does not have the column.
    pub fn name(&self, format: OutputFormat) -> Option<&ColumnName> {
        match format {
            OutputFormat::Text => self.text.as_ref(),
            OutputFormat::Json => self.json.as_ref(),
            OutputFormat::Csv => self.csv.as_ref(),
        }
    }
}

/// The columns of a table, in the order of each group. Text shows the shares first and the labels last. CSV and JSON
/// have the labels first.
#[derive(Debug)]
pub struct Columns<'p, R> {
    /// Columns that identify a row.
    pub labels: Vec<Column<'p, R>>,
    /// Columns with the values of a row.
    pub shares: Vec<Column<'p, R>>,
}

impl<'p, R> Columns<'p, R> {
    /// Returns the columns of a format in its order.
    pub fn of(self, format: OutputFormat) -> Vec<Column<'p, R>> {
        let Self { labels, shares } = self;
        let parts = match format {
            OutputFormat::Text => [shares, labels],
            OutputFormat::Json | OutputFormat::Csv => [labels, shares],
        };
        let columns = parts.into_iter().flatten();
        columns
            .filter(|column| column.name(format).is_some())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::{Sheet, SheetRole};

    #[test]
    fn a_format_has_the_columns_that_are_named_in_it_in_its_order() {
        let absent = |name| {
            Column::<()>::new(|_, ()| Value::Absent)
                .text(name)
                .data(name)
        };
        let columns = || Columns {
            labels: vec![
                absent("label"),
                Column::new(|_, ()| Value::True).json("flag"),
            ],
            shares: vec![
                absent("share"),
                Column::new(|_, ()| Value::True).csv("period"),
            ],
        };
        let names = |format| {
            let columns = columns().of(format);
            Sheet::new(SheetRole::Rows, &columns, format).header
        };
        assert_eq!(names(OutputFormat::Text), ["share", "label"]);
        assert_eq!(names(OutputFormat::Json), ["label", "flag", "share"]);
        assert_eq!(names(OutputFormat::Csv), ["label", "share", "period"]);
    }
}
