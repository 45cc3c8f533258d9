//! Why a description cannot be used.

use std::{io, path::PathBuf};

use varid_model::Address;

use crate::place::Place;

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
        /// The file, or the name of a processor that varid has.
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
    /// No processor has this name.
    #[error("there is no processor '{0}', and no such file: 'varid estimate --targets' lists them")]
    NoProcessor(String),
    /// A setting of the command line is not `KEY=VALUE`.
    #[error("'{0}' is not KEY=VALUE, such as dcache.size=8K")]
    Setting(String),
}

/// An instruction that the processor does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the processor has no instruction of the class '{class}', as there is one at {address}")]
pub struct Unsupported {
    /// The class of the instruction, by its key in the table `cycles`.
    pub class: &'static str,
    /// The address of the instruction.
    pub address: Address,
}
