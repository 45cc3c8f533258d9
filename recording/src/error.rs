//! What can go wrong with a session folder.

use std::{io, path::PathBuf};

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a session could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Io {
        /// What was being done, as a verb ("create", "read").
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The folder holds something that is not a session. Nothing in it was touched.
    #[error("{path} is not empty and not a varid session (it holds {found:?}): choose another folder with -o", path = .path.display())]
    NotASession {
        /// The folder.
        path: PathBuf,
        /// One of the entries that do not belong to a session.
        found: String,
    },
    /// Another user owns the folder or may change what is in it.
    #[error("{path} belongs to another user or can be written by others: choose another folder with -o", path = .path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// The name of a session's folder belongs to something else: a file, a pipe, a device, a link.
    #[error("{path} is not a folder, or a symbolic link to one: a session is a folder of files, name a new one or the folder itself with -o", path = .path.display())]
    NoFolder {
        /// What is there.
        path: PathBuf,
    },
    /// Another process records into the folder.
    #[error("{path} is being recorded by another process: stop that session or choose another folder", path = .path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A batch of records could not be appended. The file is readable up to the last flush, and the records are kept for the next one.
    #[error("cannot append {pending} bytes to {path}: {source}; they are kept and written at the next flush that succeeds", path = .path.display())]
    Append {
        /// The file.
        path: PathBuf,
        /// Bytes of records waiting in memory.
        pending: usize,
        /// The system's reason (no space left on device, most often).
        source: io::Error,
    },
    /// The folder holds no session.
    #[error("{path} is not a session folder: it has no session.json", path = .path.display())]
    NoSession {
        /// The folder.
        path: PathBuf,
    },
    /// session.json is not a valid manifest.
    #[error("{path}, line {line}, column {column}: {reason}", path = .path.display())]
    Manifest {
        /// The session.json file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A file of the session was written by another version.
    #[error("{path} has version {found}, this varid reads up to {known}: use the varid that recorded it", path = .path.display())]
    Version {
        /// The session.json, contexts.data, call-order.data or compiled-code.data file.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The latest version that is understood.
        known: u32,
    },
    /// perf.data, contexts.data, call-order.data or compiled-code.data was not written by varid, or is damaged.
    #[error("{path}, offset {offset:#x}: {reason}", path = .path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A part cannot be added to contexts.data or call-order.data. Nothing was added.
    #[error("cannot add {part} to {path}: {reason}", path = .path.display())]
    Contexts {
        /// The file.
        path: PathBuf,
        /// What was to be added ("a node", "a count").
        part: &'static str,
        /// Why it cannot be.
        reason: &'static str,
    },
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
