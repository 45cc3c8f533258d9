//! Which instructions does a piece of code execute, and how often?

use std::collections::BTreeMap;
use std::fmt;

/// An opcode in one of its forms, as a target's table names it: a mnemonic, with `_wide`, `_taken`, `_not`, `_ref` or `_long` behind it where the
/// forms of an opcode differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CostKey(String);

impl CostKey {
    /// Makes a key of its text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CostKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// How often each key is executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<CostKey, u32>);

impl Tally {
    /// Adds executions of a key.
    pub fn add(&mut self, key: CostKey, executions: u32) {
        let count = self.0.entry(key).or_default();
        *count = count.saturating_add(executions);
    }

    /// Returns each key with its executions, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&CostKey, u32)> {
        self.0.iter().map(|(key, count)| (key, *count))
    }
}
