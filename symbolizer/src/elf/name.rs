//! A symbol's name that is demangled once.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::demangle::demangle;

/// A function's name, which is demangled when it is first needed.
#[derive(Debug, Clone)]
pub(super) struct Name {
    raw: Box<str>,
    /// None if the name is not mangled.
    shown: OnceLock<Option<Box<str>>>,
}

impl Name {
    pub(super) fn new(raw: &str) -> Self {
        Self {
            raw: raw.into(),
            shown: OnceLock::new(),
        }
    }

    /// The name as profiles show it.
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
