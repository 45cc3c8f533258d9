//! Settings of the command line: `dcache.size=8K`, `rv32m=slow`.

use crate::{
    document::{self, Node, Table, Value},
    error::{Error, Result},
    place::{Origin, Place},
};

/// A value that replaces one of a description.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The path of tables to the value.
    path: Vec<String>,
    value: Value,
}

impl Setting {
    /// Reads `KEY=VALUE`. A value is written as in TOML; a number of bytes may end in K or M, for powers of 1024, and a text needs no quotes.
    ///
    /// # Errors
    ///
    /// There is no key or no value.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::Setting(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let path: Vec<_> = key
            .trim()
            .split('.')
            .map(|name| name.trim().to_owned())
            .collect();
        let value = value.trim();
        if path.iter().any(String::is_empty) || value.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            path,
            value: parsed(value),
        })
    }

    /// Its key: `dcache.size`.
    #[must_use]
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// Its key, if that is a single word.
    pub(crate) fn word(&self) -> Option<&str> {
        match &*self.path {
            [word] => Some(word),
            _ => None,
        }
    }

    /// The value as a node of a table.
    pub(crate) fn node(&self) -> Node {
        Node {
            origin: Origin::Setting,
            value: self.value.clone(),
        }
    }

    /// Puts the value into a table.
    pub(crate) fn apply(&self, table: &mut Table) -> Result<()> {
        let Some((last, tables)) = self.path.split_last() else {
            return Ok(());
        };
        let mut inside = table;
        for name in tables {
            let entry = inside.entry(name.clone()).or_insert_with(|| Node {
                origin: Origin::Setting,
                value: Value::Table(Table::new()),
            });
            let Value::Table(next) = &mut entry.value else {
                return Err(Error::Value {
                    place: Place {
                        file: String::new(),
                        origin: Origin::Setting,
                    },
                    key: self.key(),
                    problem: format!("'{name}' is a value, not a table"),
                });
            };
            inside = next;
        }
        inside.insert(last.clone(), self.node());
        Ok(())
    }
}

fn parsed(text: &str) -> Value {
    if let Some(bytes) = bytes(text) {
        return Value::Integer(bytes);
    }
    let table = document::parse("--set", &format!("value = {text}")).ok();
    let value = table.and_then(|mut table| table.remove("value"));
    let value = value.map(|node| of_settings(node).value);
    value.unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// The same value without the lines of the text that it was parsed from.
fn of_settings(node: Node) -> Node {
    let value = match node.value {
        Value::Table(table) => {
            let nodes = table.into_iter();
            Value::Table(nodes.map(|(key, node)| (key, of_settings(node))).collect())
        }
        Value::List(list) => Value::List(list.into_iter().map(of_settings).collect()),
        value => value,
    };
    Node {
        origin: Origin::Setting,
        value,
    }
}

/// Returns the number of bytes that `2K` or `1M` stands for.
fn bytes(text: &str) -> Option<i64> {
    let (number, factor) = match text.strip_suffix(['K', 'k']) {
        Some(number) => (number, 1 << 10),
        None => (text.strip_suffix('M')?, 1 << 20),
    };
    let number: i64 = number.parse().ok()?;
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(table: &Table, key: &str) -> Option<i64> {
        match table.get(key)?.value {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    #[test]
    fn a_setting_is_a_key_and_a_value() {
        let mut table = document::parse("t", "about = 'x'\n[dcache]\nsize = 1\n").unwrap();
        for text in ["dcache.size=2K", "cycles.alu = 2"] {
            Setting::parse(text).unwrap().apply(&mut table).unwrap();
        }
        let Value::Table(dcache) = &table["dcache"].value else {
            panic!("{table:?}");
        };
        assert_eq!(integer(dcache, "size"), Some(2048));
        assert_eq!(dcache["size"].origin, Origin::Setting);
        let inside = Setting::parse("about.x=1").unwrap().apply(&mut table);
        let message = inside.unwrap_err().to_string();
        assert_eq!(message, "--set: about.x: 'about' is a value, not a table");
        for wrong in ["", "x", "=1", "x=", "x..y=1", ".=1"] {
            assert!(Setting::parse(wrong).is_err(), "{wrong}");
        }
    }
}
