//! What became of a source?

use std::collections::BTreeMap;

/// What was imported and what was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSummary {
    /// The [name](crate::ImportFormat::name) of the source's format.
    pub format: &'static str,
    /// The program that wrote it, if it is known: `perf`, `simpleperf`.
    pub writer: Option<String>,
    /// Samples of the session.
    pub samples: u64,
    /// Samples of the source that are not in the session, by the reason.
    pub excluded: BTreeMap<String, u64>,
    /// What the source says was lost when it was recorded.
    pub lost: u64,
    /// Stacks that were unwound from copies.
    pub unwound: u64,
    /// Files whose names the session keeps, because the source carried them.
    pub named_images: usize,
    /// What else is to be known, as sentences.
    pub notes: Vec<String>,
}
