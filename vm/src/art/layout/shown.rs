//! What one function shows.

use super::error::LayoutError;
use super::library::{Function, Library};
use super::trace::{Event, Trace, Value};

/// A function and its trace.
pub(super) struct Shown<'a> {
    pub(super) trace: Trace,
    name: &'static str,
    library: &'a Library,
}

impl<'a> Shown<'a> {
    pub(super) fn of(library: &'a Library, function: &Function, name: &'static str) -> Self {
        Self {
            trace: library.trace(function),
            name,
            library,
        }
    }

    pub(super) fn named(
        library: &'a Library,
        name: &'static str,
        (start, end): (&str, &str),
    ) -> Result<Self, LayoutError> {
        let function = library.named(start, end);
        let function = function.ok_or(LayoutError::NoSymbol(name))?;
        Ok(Self::of(library, function, name))
    }

    /// Returns what a predicate takes from the events, if that is exactly one value.
    pub(super) fn only<T: PartialEq>(
        &self,
        field: &'static str,
        take: impl FnMut(&Event) -> Option<T>,
    ) -> Result<T, LayoutError> {
        let events = self.trace.events.iter().map(|(_, event)| event);
        let mut found: Vec<T> = Vec::new();
        for value in events.filter_map(take) {
            if !found.contains(&value) {
                found.push(value);
            }
        }
        let not_shown = LayoutError::NotShown {
            function: self.name,
            field,
        };
        match found.len() {
            1 => found.pop().ok_or(not_shown),
            _ => Err(not_shown),
        }
    }

    pub(super) fn argument(&self, number: usize) -> Result<Value, LayoutError> {
        let value = self.trace.argument(number);
        value.ok_or(LayoutError::NotShown {
            function: self.name,
            field: "its arguments",
        })
    }

    /// Returns the address that a word-sized value, such as a pointer, was loaded from.
    pub(super) fn word_from(&self, value: Value) -> Option<Value> {
        let (from, size) = self.trace.loaded_from(value)?;
        (size == self.library.word()).then_some(from)
    }

    /// Returns the address that 32 bits were loaded from.
    pub(super) fn half_from(&self, value: Value) -> Option<Value> {
        let (from, size) = self.trace.loaded_from(value)?;
        (size == 4).then_some(from)
    }
}
