//! What does a TOML document hold, and where? Values of the kinds that a configuration has; what is
//! wrong is collected with its place.

use std::fmt;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use varid_recording::terminal::one_line;

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What, and what to do.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

/// Problems that are told; more would help nobody.
const MAX_PROBLEMS: usize = 50;
/// Problems that are looked for: the first that are found are not always the first in the text.
const MAX_FOUND: usize = 1000;

/// What has been found wrong with a text.
#[derive(Debug)]
pub struct Problems<'t> {
    text: &'t str,
    /// By offset.
    found: Vec<(usize, String)>,
}

/// A value and the bytes that it is written in.
pub type Value<'d> = Spanned<DeValue<'d>>;

impl<'t> Problems<'t> {
    /// None yet.
    pub fn of(text: &'t str) -> Self {
        Self {
            text,
            found: Vec::new(),
        }
    }

    /// Something is wrong there.
    pub fn at(&mut self, place: &Range<usize>, what: impl Into<String>) {
        if self.found.len() < MAX_FOUND {
            self.found.push((place.start, what.into()));
        }
    }

    /// All of them, from the first line on.
    pub fn finish(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|(offset, _)| *offset);
        self.found.truncate(MAX_PROBLEMS);
        let text = self.text;
        let placed = |(offset, what): (usize, String)| {
            let before = text.get(..offset).unwrap_or(text);
            let line = before.rsplit('\n').next().unwrap_or_default();
            Problem {
                line: before.matches('\n').count().saturating_add(1),
                column: line.chars().count().saturating_add(1),
                // Names may hold what a terminal takes for more than text.
                what: one_line(&what),
            }
        };
        self.found.into_iter().map(placed).collect()
    }

    /// The document's top.
    pub fn document(&mut self) -> DeTable<'t> {
        let (document, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let end = self.text.len();
            self.at(&error.span().unwrap_or(end..end), error.message());
        }
        document.into_inner()
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Keys that are none of a table's are wrong.
    pub fn only(&mut self, table: &DeTable<'_>, of: &str, known: &[&str]) {
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

    /// A table.
    pub fn table<'v, 'd>(&mut self, value: &'v Value<'d>) -> Option<&'v DeTable<'d>> {
        let table = value.get_ref().as_table();
        table.or_else(|| self.other(value, "a table"))
    }

    /// Yes or no.
    pub fn bool(&mut self, value: &Value<'_>) -> Option<bool> {
        let bool = value.get_ref().as_bool();
        bool.or_else(|| self.other(value, "true or false"))
    }

    /// A text.
    pub fn text<'v>(&mut self, value: &'v Value<'_>) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        text.or_else(|| self.other(value, "a text in quotes"))
    }

    /// One of a few words.
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

    /// A number within bounds.
    pub fn number(&mut self, value: &Value<'_>, bounds: RangeInclusive<u64>) -> Option<u64> {
        let Some(digits) = value.get_ref().as_integer() else {
            return self.other(value, "a whole number");
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

    /// A number, or a text that a function reads, within bounds.
    pub fn measure<T: PartialOrd>(
        &mut self,
        value: &Value<'_>,
        read: impl Fn(&str) -> Result<T, String>,
        bounds: (RangeInclusive<T>, &str),
    ) -> Option<T> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().to_owned(),
            _ => return self.other(value, "a number, or a text of a number and a unit"),
        };
        let (range, told) = bounds;
        match read(&text) {
            Ok(measure) if range.contains(&measure) => return Some(measure),
            Ok(_) => self.at(&value.span(), format!("'{text}' is not {told}")),
            Err(what) => self.at(&value.span(), what),
        }
        None
    }

    /// A list of texts, each read by a function; wrong ones are left out.
    pub fn list<T>(
        &mut self,
        value: &Value<'_>,
        most: usize,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<(T, Range<usize>)> {
        let Some(values) = value.get_ref().as_array() else {
            let _: Option<()> = self.other(value, "a list, [\"…\", \"…\"]");
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

    fn other<T>(&mut self, value: &Value<'_>, wanted: &str) -> Option<T> {
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
            format!("{wanted} is wanted here, not {found}"),
        );
        None
    }
}

/// The known key that was probably meant.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let distances = known.iter().map(|key| (distance(name, key), *key));
    let (distance, key) = distances.min()?;
    // A third of it may be wrong.
    (distance.saturating_mul(3) <= key.len().max(3)).then_some(key)
}

/// Characters that have to be put in, left out or changed (Levenshtein). Of a name that is much
/// longer than any key only that.
fn distance(one: &str, other: &str) -> usize {
    if one.len() > other.len().saturating_mul(2).saturating_add(8) {
        return one.len();
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, from) in one.chars().enumerate() {
        let mut left = at.saturating_add(1);
        let mut diagonal = at;
        let mut next = vec![left];
        for (above, to) in row.iter().skip(1).zip(&other) {
            let changed = diagonal.saturating_add(usize::from(from != *to));
            let moved = left.min(*above).saturating_add(1);
            left = changed.min(moved);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_was_probably_meant_is_known() {
        let known = ["methods", "frequency", "period", "all"];
        for (name, meant) in [
            ("method", Some("methods")),
            ("metods", Some("methods")),
            ("freqency", Some("frequency")),
            ("al", Some("all")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
