//! A target's file as tables of values.

use std::{collections::BTreeMap, fmt};

use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};

/// A table by its keys.
pub type Table = BTreeMap<String, Value>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Another number, `nan` and `inf` among them.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A table.
    Table(Table),
    /// A date, a boolean value, or a number that is too large, as the file has it.
    Other(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl Value {
    /// Returns the whole number that it is.
    pub const fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads the text of a file.
pub fn parse(file: &str, text: &str) -> Result<Table> {
    let document = DeTable::parse(text).map_err(|error| Error::Syntax {
        file: file.to_owned(),
        message: error.to_string().trim_end().to_owned(),
    })?;
    Ok(table(document.get_ref()))
}

fn table(table: &DeTable<'_>) -> Table {
    let entries = table.iter();
    let entries = entries.map(|(key, entry)| (key.get_ref().to_string(), value(entry.get_ref())));
    entries.collect()
}

// The parser bounds how deep tables and lists lie in each other.
fn value(found: &DeValue<'_>) -> Value {
    match found {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            parsed.map_or_else(|_| Value::Other(number.as_str().to_owned()), Value::Integer)
        }
        DeValue::Float(number) => {
            let parsed = number.as_str().parse();
            parsed.map_or_else(|_| Value::Other(number.as_str().to_owned()), Value::Float)
        }
        DeValue::Array(list) => Value::List(list.iter().map(|one| value(one.get_ref())).collect()),
        DeValue::Table(inside) => Value::Table(table(inside)),
        DeValue::Boolean(is) => Value::Other(is.to_string()),
        DeValue::Datetime(date) => Value::Other(date.to_string()),
    }
}
