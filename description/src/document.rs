//! A file as a tree of values, each with its line.

use std::{collections::BTreeMap, fmt};

use toml::de::{DeTable, DeValue};

use crate::{
    error::{Error, Result},
    place::Origin,
};

/// A table by its keys.
pub type Table = BTreeMap<String, Node>;

/// A value, and where it was set.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it was set.
    pub origin: Origin,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Another number, `nan` and `inf` among them.
    Float {
        /// The number.
        value: f64,
        /// How the file has it.
        text: String,
    },
    /// `true` or `false`.
    Boolean(bool),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Table),
    /// Another one, such as a date or a number that is too large, as the file has it.
    Other(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Boolean(is) => is.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
            Self::Float { text, .. } | Self::Other(text) => f.write_str(text),
        }
    }
}

impl Value {
    /// Returns the whole number that it is.
    #[must_use]
    pub const fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads the text of a file. `file` is its name in messages.
///
/// # Errors
///
/// It is not TOML.
pub fn parse(file: &str, text: &str) -> Result<Table> {
    let document = DeTable::parse(text).map_err(|error| Error::Syntax {
        file: file.to_owned(),
        message: error.to_string().trim_end().to_owned(),
    })?;
    Ok(Lines::of(text).table(document.get_ref()))
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
        Self(std::iter::once(0).chain(ends).collect())
    }

    fn origin(&self, offset: usize) -> Origin {
        Origin::Line(self.0.partition_point(|start| *start <= offset))
    }

    fn table(&self, table: &DeTable<'_>) -> Table {
        let entries = table.iter().map(|(key, entry)| {
            let node = self.node(key.span().start, entry.get_ref());
            (key.get_ref().to_string(), node)
        });
        entries.collect()
    }

    // The parser bounds how deep tables and lists lie in each other.
    fn node(&self, offset: usize, found: &DeValue<'_>) -> Node {
        let value = match found {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                parsed.map_or_else(|_| Value::Other(number.as_str().to_owned()), Value::Integer)
            }
            DeValue::Float(number) => {
                let text = number.as_str().to_owned();
                match text.parse() {
                    Ok(value) => Value::Float { value, text },
                    Err(_) => Value::Other(text),
                }
            }
            DeValue::Boolean(is) => Value::Boolean(*is),
            DeValue::Datetime(date) => Value::Other(date.to_string()),
            DeValue::Array(list) => {
                let nodes = list.iter();
                let nodes = nodes.map(|one| self.node(one.span().start, one.get_ref()));
                Value::List(nodes.collect())
            }
            DeValue::Table(inside) => Value::Table(self.table(inside)),
        };
        Node {
            origin: self.origin(offset),
            value,
        }
    }
}

/// Puts the values of one table over those of another, table by table.
pub fn merge(table: &mut Table, over: &Table) {
    for (key, node) in over {
        if let Value::Table(inner) = &node.value
            && let Some(Node {
                value: Value::Table(below),
                ..
            }) = table.get_mut(key)
        {
            merge(below, inner);
        } else {
            table.insert(key.clone(), node.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_line() {
        let table = parse("t", "a = 1\n\n[b]\nc = true\nd = { e = 'x' }\n").unwrap();
        assert_eq!(table["a"].origin, Origin::Line(1));
        let Value::Table(b) = &table["b"].value else {
            panic!("{table:?}");
        };
        assert_eq!(b["c"].origin, Origin::Line(4));
        assert_eq!(b["c"].value, Value::Boolean(true));
        let Value::Table(d) = &b["d"].value else {
            panic!("{b:?}");
        };
        assert_eq!(d["e"].origin, Origin::Line(5));
        assert!(parse("t", "a = ").is_err());
    }

    #[test]
    fn a_table_is_put_over_another_key_by_key() {
        let mut table = parse("t", "[a]\nx = 1\ny = { z = 2 }\n").unwrap();
        let over = parse("t", "b = 3\na = { y = { w = 4 } }").unwrap();
        merge(&mut table, &over);
        let text = format!("{table:?}");
        for kept in ["Integer(1)", "Integer(2)", "Integer(3)", "Integer(4)"] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }
}
