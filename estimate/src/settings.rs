//! Settings of the command line: `method_cache.size=2K`.

use crate::{
    document::{self, Table, Value},
    error::{Error, Result},
};

/// A value that replaces one of a target's file.
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
        let path: Vec<_> = key.trim().split('.').map(str::to_owned).collect();
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

    /// Returns the key: `method_cache.size`.
    #[must_use]
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// Puts the value into a target's table.
    pub(crate) fn apply(&self, table: &mut Table) -> Result<()> {
        let Some((last, tables)) = self.path.split_last() else {
            return Ok(());
        };
        let mut inside = table;
        for name in tables {
            let entry = inside.entry(name.clone());
            let Value::Table(next) = entry.or_insert_with(|| Value::Table(Table::new())) else {
                return Err(Error::Target {
                    file: "--set".to_owned(),
                    key: self.key(),
                    problem: format!("'{name}' is a value, not a table"),
                });
            };
            inside = next;
        }
        inside.insert(last.clone(), self.value.clone());
        Ok(())
    }
}

fn parsed(text: &str) -> Value {
    if let Some(bytes) = bytes(text) {
        return Value::Integer(bytes);
    }
    let table = document::parse("--set", &format!("value = {text}")).ok();
    let value = table.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// Returns the number of bytes that `2K` or `1M` stands for.
fn bytes(text: &str) -> Option<i64> {
    let (number, shift) = match text.strip_suffix(['K', 'k']) {
        Some(number) => (number, 10),
        None => (text.strip_suffix('M')?, 20),
    };
    let number: i64 = number.parse().ok()?;
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_key_and_a_value() {
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
        assert_eq!(table, document::parse("t", expected).unwrap());
        let inside = Setting::parse("about.x=1").unwrap().apply(&mut table);
        assert!(
            inside
                .unwrap_err()
                .to_string()
                .contains("'about' is a value")
        );
        for wrong in ["", "x", "=1", "x=", "x..y=1", ".=1"] {
            assert!(Setting::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Setting::parse_list("a.b=1K,2K").unwrap().len(), 2);
        assert!(Setting::parse_list("a.b=1K,").is_err());
    }
}
