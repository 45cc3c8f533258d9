//! What can go wrong with a report.

use std::path::PathBuf;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] varid_recording::Error),
    /// No event has the name that the options give.
    #[error("no event of this session is called '{name}': it has {}", recorded.join(", "))]
    NoEvent {
        /// The name.
        name: String,
        /// The session's events.
        recorded: Vec<String>,
    },
    /// A folder of the name options cannot be read.
    #[error("cannot look for symbols in {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file of the name options cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file of the name options breaks its format.
    #[error("{}: {source}", path.display())]
    Symbols {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: varid_symbolizer::Error,
    },
    /// A format that has the samples one by one cannot be made of sums.
    #[error("the profile has no table of its samples: Options::sample_table makes one")]
    NoSampleTable,
    /// No function with samples has the name that is asked for.
    #[error("{0}")]
    NoMethod(String),
    /// Sources cannot be looked for there.
    #[error("cannot look for sources in {}: {source}; --source-path takes folders and archives (jar, zip, apk)", path.display())]
    SourcePath {
        /// The folder or archive.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The report cannot be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] std::io::Error),
}
