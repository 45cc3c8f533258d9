//! What stands out in colour on a terminal?

use std::borrow::Cow;

use crate::columns::Value;

/// Percentages from here on are of the hot code, and from there on of the warm one, as perf has it.
const HOT: f64 = 5.0;
const WARM: f64 = 0.5;

/// How much a cell says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Emphasis {
    #[default]
    Plain,
    Warm,
    Hot,
    /// The first sentence, and the names of columns.
    Title,
}

impl Emphasis {
    /// That of a value: shares and their changes have one.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Percent(percent) | Value::Change(percent) if percent.abs() >= HOT => Self::Hot,
            Value::Percent(percent) | Value::Change(percent) if percent.abs() >= WARM => Self::Warm,
            _ => Self::Plain,
        }
    }

    /// A text in its colour, if there are colours.
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
