//! Why there is no estimate.

/// The result of a function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no estimate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A target's file cannot be read, or a setting is wrong.
    #[error(transparent)]
    Description(#[from] varid_description::Error),
    /// A value of a target is wrong.
    #[error("{file}: {key}: {problem}")]
    Target {
        /// The file, or the name of a target that varid has.
        file: String,
        /// The value's key, such as `cost.idiv.low`.
        key: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// No target has this name.
    #[error(
        "there is no target '{0}', and no such file: 'varid estimate --targets' lists the targets"
    )]
    NoTarget(String),
    /// The session's counts cannot be priced.
    #[error("{0}")]
    Counts(String),
    /// The order of calls cannot be read.
    #[error(transparent)]
    Recording(#[from] varid_recording::Error),
}
