//! The errors of an import.

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
        /// The attempted operation, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content has a known format that is not imported.
    #[error("{path} is not imported: it is {what}", path = .path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The name of the format, and what would help.
        what: &'static str,
    },
    /// The content has no known format.
    #[error(
        "{path} is {neither} (it starts with {start:?}): --format names its format if it is one of these",
        path = .path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The formats that are known: "neither A nor B or C".
        neither: String,
        /// The beginning of the content.
        start: String,
    },
    /// No part of a binary file can be read.
    #[error("{path}, offset {offset:#x}: {reason}", path = .path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Offset in the file, or in the decompressed file.
        offset: u64,
        /// The problem there, and what would help.
        reason: &'static str,
    },
    /// No part of a text can be read.
    #[error("{path}, line {line}: {reason}", path = .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The problem there, and what would help.
        reason: &'static str,
    },
    /// The session would replace its own source.
    #[error("{path} holds what is imported: name another folder with -o", path = .path.display())]
    HoldsSource {
        /// The session's folder.
        path: PathBuf,
    },
    /// The source has no samples.
    #[error("{path} has no samples: {why}", path = .path.display())]
    NoSamples {
        /// The file.
        path: PathBuf,
        /// What it has instead.
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
    /// Returns a function that converts an [`io::Error`] to this crate's error.
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
