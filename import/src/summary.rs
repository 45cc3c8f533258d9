//! The result of an import.

use std::collections::BTreeMap;

/// What was imported, and what was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSummary {
    /// The [name](crate::ImportFormat::name) of the source's format.
    pub format: &'static str,
    /// The program that wrote the source, if it is known: `perf`, `simpleperf`.
    pub writer: Option<String>,
    /// Number of samples in the session.
    pub samples: u64,
    /// Number of samples of the source that are not in the session, by reason.
    pub excluded: BTreeMap<String, u64>,
    /// Number of losses that the source reports.
    pub lost: u64,
    /// Number of stacks that were unwound from copies.
    pub unwound: u64,
    /// Number of files whose names the session has because the source had them.
    pub named_images: usize,
    /// Notes, as sentences.
    pub notes: Vec<String>,
}
