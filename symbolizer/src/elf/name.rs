//! A symbol's name, demangled once.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::demangle::demangle;

/// A function's name, made readable when it is first asked for.
#[derive(Debug, Clone)]
pub(super) struct Name {
    raw: Box<str>,
    /// None: it is readable as it is.
    shown: OnceLock<Option<Box<str>>>,
}

impl Name {
    pub(super) fn new(raw: &str) -> Self {
        Self {
            raw: raw.into(),
            shown: OnceLock::new(),
        }
    }

    /// As profiles show it.
    pub(super) fn shown(&self) -> &str {
        self.shown
            .get_or_init(|| match demangle(&self.raw) {
                Cow::Borrowed(_) => None,
                Cow::Owned(name) => Some(name.into()),
            })
            .as_deref()
            .unwrap_or(&self.raw)
    }
}
