//! Why there is no estimate.

use std::{io, path::PathBuf};

/// The result of a function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no estimate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A target's file cannot be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A target's file is not TOML. The message has line and column.
    #[error("{file}: {message}")]
    Syntax {
        /// The file, or the name of a target that varid has.
        file: String,
        /// What is wrong, and where.
        message: String,
    },
    /// A value of a target is wrong.
    #[error("{file}: {key}: {problem}")]
    Target {
        /// The file, the name of a target that varid has, or the option that sets the value.
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
    /// A setting of the command line is not `KEY=VALUE`.
    #[error("'{0}' is not KEY=VALUE, such as method_cache.size=2K")]
    Setting(String),
    /// The session's counts cannot be priced.
    #[error("{0}")]
    Counts(String),
    /// The order of calls cannot be read.
    #[error(transparent)]
    Recording(#[from] varid_recording::Error),
}
