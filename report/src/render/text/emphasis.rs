//! Colours for a terminal.

use std::borrow::Cow;

use crate::columns::Value;

/// Minimum percentages of hot and warm code, as in perf.
const HOT: f64 = 5.0;
const WARM: f64 = 0.5;

/// The emphasis of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Emphasis {
    #[default]
    Plain,
    Warm,
    Hot,
    /// The first sentence, and the column names.
    Title,
}

impl Emphasis {
    /// Returns the emphasis of a value. Only shares and their changes have one.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Percent(percent) | Value::Change(percent) if percent.abs() >= HOT => Self::Hot,
            Value::Percent(percent) | Value::Change(percent) if percent.abs() >= WARM => Self::Warm,
            _ => Self::Plain,
        }
    }

    /// Colours a text if `colour` is set.
    pub fn painted(self, text: &str, colour: bool) -> Cow<'_, str> {
        let code = match self {
            _ if !colour || text.trim().is_empty() => return text.into(),
            Self::Plain => return text.into(),
            Self::Warm => "32",
            Self::Hot => "31",
            Self::Title => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m").into()
    }
}
