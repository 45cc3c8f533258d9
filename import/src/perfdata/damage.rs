//! A problem of a perf.data file.

/// A problem of the file, with its position.
#[derive(Debug)]
pub struct Damage {
    /// Offset in the file, in bytes. For the content of a compressed record, it is the offset of that record.
    pub offset: u64,
    /// The problem.
    pub reason: &'static str,
}
