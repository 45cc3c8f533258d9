//! Reads the types that a configuration needs from a TOML document, and collects errors with their positions.

use std::fmt;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use varid_model::nearest;
use varid_recording::terminal::one_line;

/// An error in a configuration file, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The error, and what would fix it.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

/// The maximum number of reported problems.
const MAX_PROBLEMS: usize = 50;
/// The maximum number of collected problems. It is larger than [`MAX_PROBLEMS`] because problems are not found in the order of the text.
const MAX_FOUND: usize = 1000;

/// The problems of a text.
#[derive(Debug)]
pub struct Problems<'t> {
    text: &'t str,
    /// Offset in the text and description of each problem, in the order in which they were found.
    found: Vec<(usize, String)>,
}

/// A value with its range of bytes in the text.
pub type Value<'d> = Spanned<DeValue<'d>>;

impl<'t> Problems<'t> {
    /// Starts with a text and no problems.
    pub fn of(text: &'t str) -> Self {
        Self {
            text,
            found: Vec::new(),
        }
    }

    /// Adds a problem for a range of the text.
    pub fn at(&mut self, span: &Range<usize>, what: impl Into<String>) {
        if self.found.len() < MAX_FOUND {
            self.found.push((span.start, what.into()));
        }
    }

    /// Returns the first problems, in the order of the text.
    pub fn finish(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|(offset, _)| *offset);
        self.found.truncate(MAX_PROBLEMS);
        let text = self.text;
        let located = |(offset, what): (usize, String)| {
            let before = text.get(..offset).unwrap_or(text);
            let line = before.rsplit('\n').next().unwrap_or_default();
            Problem {
                line: before.matches('\n').count().saturating_add(1),
                column: line.chars().count().saturating_add(1),
                // A name from the file may have control characters.
                what: one_line(&what),
            }
        };
        self.found.into_iter().map(located).collect()
    }

    /// Parses the text. Returns the table of its top level.
    pub fn document(&mut self) -> DeTable<'t> {
        let (document, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let end = self.text.len();
            self.at(&error.span().unwrap_or(end..end), error.message());
        }
        document.into_inner()
    }

    /// Returns true if no problem was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Adds a problem for each key of a table that is not among the known ones. `of` names the table in the message.
    pub fn check_keys(&mut self, table: &DeTable<'_>, of: &str, known: &[&str]) {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let help = match nearest(name, known) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => format!("known are {}", known.join(", ")),
            };
            self.at(&key.span(), format!("{of} has no key '{name}': {help}"));
        }
    }

    /// Returns a value as a table. Adds a problem if it has another type.
    pub fn table<'v, 'd>(&mut self, value: &'v Value<'d>) -> Option<&'v DeTable<'d>> {
        let table = value.get_ref().as_table();
        table.or_else(|| self.wrong_type(value, "a table"))
    }

    /// Returns a value as a boolean. Adds a problem if it has another type.
    pub fn bool(&mut self, value: &Value<'_>) -> Option<bool> {
        let bool = value.get_ref().as_bool();
        bool.or_else(|| self.wrong_type(value, "true or false"))
    }

    /// Returns a value as a string. Adds a problem if it has another type.
    pub fn text<'v>(&mut self, value: &'v Value<'_>) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        text.or_else(|| self.wrong_type(value, "a text in quotes"))
    }

    /// Returns what a string stands for, if it is one of a few words. Adds a problem if it is not.
    pub fn word<T: Copy>(&mut self, value: &Value<'_>, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(value)?;
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*meant);
        }
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        self.at(
            &value.span(),
            format!("'{text}' is none of {}", known.join(", ")),
        );
        None
    }

    /// Returns a whole number within bounds. Adds a problem if it is not one.
    pub fn number(&mut self, value: &Value<'_>, bounds: RangeInclusive<u64>) -> Option<u64> {
        let Some(digits) = value.get_ref().as_integer() else {
            return self.wrong_type(value, "a whole number");
        };
        let number = i128::from_str_radix(digits.as_str(), digits.radix()).ok();
        let within = number.and_then(|number| u64::try_from(number).ok());
        within.filter(|number| bounds.contains(number)).or_else(|| {
            let (from, to) = (bounds.start(), bounds.end());
            let what = format!("{digits} is not from {from} to {to}");
            self.at(&value.span(), what);
            None
        })
    }

    /// Returns a measure within bounds, which `read` parses from a number or from a string like `5m`. `bounds`: the range, and its
    /// description for the message.
    pub fn measure<T: PartialOrd>(
        &mut self,
        value: &Value<'_>,
        read: impl Fn(&str) -> Result<T, String>,
        bounds: (RangeInclusive<T>, &str),
    ) -> Option<T> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().to_owned(),
            _ => return self.wrong_type(value, "a number, or a text of a number and a unit"),
        };
        let (range, as_text) = bounds;
        match read(&text) {
            Ok(measure) if range.contains(&measure) => return Some(measure),
            Ok(_) => self.at(&value.span(), format!("'{text}' is not {as_text}")),
            Err(what) => self.at(&value.span(), what),
        }
        None
    }

    /// Returns the strings of a list, at most `most`, each parsed by `read`, with their spans. Items with a problem are left out.
    pub fn list<T>(
        &mut self,
        value: &Value<'_>,
        most: usize,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<(T, Range<usize>)> {
        let Some(values) = value.get_ref().as_array() else {
            let _: Option<()> = self.wrong_type(value, "a list, [\"…\", \"…\"]");
            return Vec::new();
        };
        if values.len() > most {
            let what = format!("{} are too many: {most} are taken at most", values.len());
            self.at(&value.span(), what);
            return Vec::new();
        }
        let mut list = Vec::new();
        for value in values.iter() {
            match self.text(value).map(&read) {
                Some(Ok(item)) => list.push((item, value.span())),
                Some(Err(what)) => self.at(&value.span(), what),
                None => {}
            }
        }
        list
    }

    /// Adds the problem that a value is not of the expected type.
    fn wrong_type<T>(&mut self, value: &Value<'_>, expected: &str) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or a time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.at(
            &value.span(),
            format!("{expected} is wanted here, not {found}"),
        );
        None
    }
}
