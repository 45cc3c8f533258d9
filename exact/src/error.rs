//! The errors of exact calling contexts.

use std::{io, path::PathBuf};

/// The result of a function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there are no exact calling contexts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Io {
        /// The attempted operation, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A tree violates its format.
    #[error("{path}: offset {offset:#x}: {problem}", path = .path.display())]
    Tree {
        /// The file.
        path: PathBuf,
        /// The offset in the file, in bytes.
        offset: u64,
        /// What is wrong there.
        problem: &'static str,
    },
    /// An event of the call order is the increment of a word that belongs to no context.
    #[error(
        "an event of the call order is of word {word:#x} of the tree, which belongs to no context"
    )]
    Event {
        /// The word, counted from the start of the file.
        word: u32,
    },
    /// A path cannot be passed to a VM.
    #[error("{path} has a quote, a line break or bytes that are not UTF-8, which no option of a VM can have: -o names another place", path = .path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// A dex file cannot be rewritten.
    #[error("{path}: {source}", path = .path.display())]
    Dex {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: varid_instrument_dex::NotRewritten,
    },
    /// A command that starts ART, or varid itself, has an option with which dex files cannot be counted.
    #[error("artvm cannot be counted with {option}: {reason}")]
    Option {
        /// The option.
        option: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// The session cannot be written.
    #[error(transparent)]
    Recording(#[from] varid_recording::Error),
    /// The names cannot be written.
    #[error(transparent)]
    Names(#[from] varid_symbolizer::Error),
}

impl Error {
    /// Returns what makes an error of a failed operation on a file.
    pub(crate) fn io(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
