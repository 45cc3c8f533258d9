//! Settings of the command line: `dcache.size=8K`, `rv32m=slow`.

use crate::{
    document::{self, Node, Table, Value},
    error::{Error, Result},
    place::Origin,
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

    /// Reads `KEY=VALUE,VALUE`: a setting for each value.
    ///
    /// # Errors
    ///
    /// There is no key, or a value is missing.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        let wrong = || Error::Setting(text.to_owned());
        let (key, values) = text.split_once('=').ok_or_else(wrong)?;
        let values = values.split(',');
        values
            .map(|value| Self::parse(&format!("{key}={value}")))
            .collect()
    }

    /// Its key: `dcache.size`.
    #[must_use]
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// Its key, if that is a single word.
    #[must_use]
    pub fn word(&self) -> Option<&str> {
        match &*self.path {
            [word] => Some(word),
            _ => None,
        }
    }

    /// The value as a node of a table.
    #[must_use]
    pub fn node(&self) -> Node {
        Node {
            origin: Origin::Setting,
            value: self.value.clone(),
        }
    }

    /// Puts the value into a table.
    ///
    /// # Errors
    ///
    /// A part of the key is a value, not a table.
    pub fn apply(&self, table: &mut Table) -> Result<()> {
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
                let problem = format!("'{name}' is a value, not a table");
                return Err(Error::of_setting(self.key(), problem));
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

    #[test]
    fn a_value_is_written_as_in_a_file() {
        let mut table = document::parse("t", "[method_cache]\nsize = 1\n").unwrap();
        for text in [
            "method_cache.size=2K",
            "load.hit = 4.5",
            "cost.iadd={ value = 1 }",
            "about=x y",
        ] {
            Setting::parse(text).unwrap().apply(&mut table).unwrap();
        }
        let expected =
            "about = 'x y'\nmethod_cache.size = 2048\nload.hit = 4.5\ncost.iadd.value = 1";
        let expected = document::parse("t", expected).unwrap();
        let without_lines = |table| {
            of_settings(Node {
                origin: Origin::Setting,
                value: Value::Table(table),
            })
        };
        assert_eq!(without_lines(table), without_lines(expected));
        assert_eq!(Setting::parse_list("a.b=1K,2K").unwrap().len(), 2);
        assert!(Setting::parse_list("a.b=1K,").is_err());
    }
}
