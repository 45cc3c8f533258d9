//! Why a description cannot be used.

use std::{io, path::PathBuf};

use crate::place::{Origin, Place};

/// The result of a function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a description cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its file cannot be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Its file is not TOML. The message has line and column.
    #[error("{file}: {message}")]
    Syntax {
        /// The file, or the name of a description that varid has.
        file: String,
        /// What is wrong, and where.
        message: String,
    },
    /// A value is wrong.
    #[error("{place}: {key}: {problem}")]
    Value {
        /// Where it was set.
        place: Place,
        /// Its key, such as `dcache.size`.
        key: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A setting of the command line is not `KEY=VALUE`.
    #[error("'{0}' is not KEY=VALUE, such as method_cache.size=2K")]
    Setting(String),
}

impl Error {
    /// Makes the error of a value that a setting of the command line has set.
    #[must_use]
    pub fn of_setting(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Value {
            place: Place {
                file: String::new(),
                origin: Origin::Setting,
            },
            key: key.into(),
            problem: problem.into(),
        }
    }
}
