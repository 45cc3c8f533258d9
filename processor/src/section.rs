//! Takes values out of a table of a description, by key.

use std::collections::BTreeMap;

use varid_description::{Error, Node, Origin, Place, Result, Table, Value};
use varid_model::nearest;

/// A table whose values are taken one by one. What is left in the end is unknown.
#[derive(Debug)]
pub struct Section {
    file: String,
    /// Its key, with a dot behind it; empty for the whole file.
    prefix: String,
    table: Table,
    /// The keys that were looked for.
    known: Vec<&'static str>,
    /// Where the taken values were set.
    origins: BTreeMap<String, Origin>,
}

impl Section {
    /// Begins with a table, which has a key unless it is the whole file.
    #[must_use]
    pub fn new(file: &str, key: Option<&str>, table: Table) -> Self {
        let origins = table.iter();
        Self {
            file: file.to_owned(),
            prefix: key.map(|key| format!("{key}.")).unwrap_or_default(),
            origins: origins
                .map(|(key, node)| (key.clone(), node.origin))
                .collect(),
            table,
            known: Vec::new(),
        }
    }

    /// An error of a value with this key.
    #[must_use]
    pub fn wrong(&self, key: &str, problem: impl Into<String>) -> Error {
        let origin = self.origins.get(key).copied();
        Error::Value {
            place: Place {
                file: self.file.clone(),
                origin: origin.unwrap_or_else(|| self.origin()),
            },
            key: format!("{}{key}", self.prefix),
            problem: problem.into(),
        }
    }

    /// Where the section is: at its first value. An empty one is at the file's beginning.
    fn origin(&self) -> Origin {
        let lines = self.origins.values();
        let lines = lines.filter_map(|origin| match origin {
            Origin::Line(line) => Some(*line),
            Origin::Setting => None,
        });
        Origin::Line(lines.min().unwrap_or(1))
    }

    /// Takes a value.
    pub fn take(&mut self, key: &'static str) -> Option<Node> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// Takes a whole number from 0 to `most`.
    ///
    /// # Errors
    ///
    /// It is another value.
    pub fn number(&mut self, key: &'static str, most: u32) -> Result<Option<u32>> {
        let Some(node) = self.take(key) else {
            return Ok(None);
        };
        let number = match node.value {
            Value::Integer(number) => u32::try_from(number).ok().filter(|number| *number <= most),
            _ => None,
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(
                key,
                format!("{} is not a whole number from 0 to {most}", node.value),
            )),
        }
    }

    /// Takes a text.
    ///
    /// # Errors
    ///
    /// It is another value.
    pub fn text(&mut self, key: &'static str) -> Result<Option<String>> {
        match self.take(key).map(|node| node.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, format!("{other} is not a text"))),
        }
    }

    /// Takes a text that stands for one of some values.
    ///
    /// # Errors
    ///
    /// It is another text or value.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let found = choices.iter().find(|(name, _)| *name == text);
        match found {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
                Err(self.wrong(key, format!("'{text}' is not one of {}", names.join(", "))))
            }
        }
    }

    /// Takes a table. None: there is none.
    ///
    /// # Errors
    ///
    /// It is another value.
    pub fn section(&mut self, key: &'static str) -> Result<Option<Self>> {
        match self.take(key).map(|node| node.value) {
            None => Ok(None),
            Some(Value::Table(table)) => {
                let key = format!("{}{key}", self.prefix);
                Ok(Some(Self::new(&self.file, Some(&key), table)))
            }
            Some(other) => Err(self.wrong(key, format!("{other} is not a table"))),
        }
    }

    /// Takes a table, an empty one if there is none.
    ///
    /// # Errors
    ///
    /// It is another value.
    pub fn section_or_empty(&mut self, key: &'static str) -> Result<Self> {
        let section = self.section(key)?;
        let empty = || {
            Self::new(
                &self.file,
                Some(&format!("{}{key}", self.prefix)),
                Table::new(),
            )
        };
        Ok(section.unwrap_or_else(empty))
    }

    /// Ends the section.
    ///
    /// # Errors
    ///
    /// It has a value that was not looked for.
    pub fn finish(self) -> Result<()> {
        let Some((key, _)) = self.table.first_key_value() else {
            return Ok(());
        };
        let problem = match nearest(key, &self.known) {
            Some(meant) => format!("unknown; is '{meant}' meant?"),
            None => format!("unknown; known are {}", self.known.join(", ")),
        };
        Err(self.wrong(key, problem))
    }
}
