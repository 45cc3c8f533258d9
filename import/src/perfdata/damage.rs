//! What is wrong with a perf.data file?

/// What is wrong with the file, and where.
#[derive(Debug)]
pub struct Damage {
    /// Bytes from the start of the file; of a compressed record's content, where that record is.
    pub offset: u64,
    /// What is wrong.
    pub reason: &'static str,
}
