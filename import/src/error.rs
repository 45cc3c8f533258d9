//! Why is a source not imported?

use std::{io, path::PathBuf};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a source could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The content is of a format that is known and not imported.
    #[error("{path} is not imported: it is {what}", path = .path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// What it is, and what would help.
        what: &'static str,
    },
    /// The content is of no format that is known.
    #[error(
        "{path} is {neither} (it starts with {start:?}): --format names its format if it is one of these",
        path = .path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The formats that are known: "neither A nor B or C".
        neither: String,
        /// What it starts with.
        start: String,
    },
    /// Nothing of perf.data can be read.
    #[error("{path}, offset {offset:#x}: {reason}", path = .path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Where in it, or in what it is when decompressed.
        offset: u64,
        /// What is wrong there, and what would help.
        reason: &'static str,
    },
    /// Nothing of a text can be read.
    #[error("{path}, line {line}: {reason}", path = .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong there, and what would help.
        reason: &'static str,
    },
    /// The session would take its own source's place.
    #[error("{path} holds what is imported: name another folder with -o", path = .path.display())]
    HoldsSource {
        /// The session's folder.
        path: PathBuf,
    },
    /// There is nothing to import.
    #[error("{path} has no samples: {why}", path = .path.display())]
    NoSamples {
        /// The file.
        path: PathBuf,
        /// What was there instead.
        why: String,
    },
    /// The session cannot be written.
    #[error(transparent)]
    Recording(#[from] varid_recording::Error),
    /// A substitute of the session cannot be written.
    #[error(transparent)]
    Symbols(#[from] varid_symbolizer::Error),
}

impl Error {
    /// Makes a function that turns an [`io::Error`] into this crate's.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
