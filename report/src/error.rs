//! The errors of this crate.

use std::path::PathBuf;

use crate::weights::MAX_COUNTERS;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] varid_recording::Error),
    /// No event has the name in the options.
    #[error("no event of this session is called '{name}': it has {}", recorded.join(", "))]
    NoEvent {
        /// The name.
        name: String,
        /// The session's events.
        recorded: Vec<String>,
    },
    /// A view names a measure that the session does not have.
    #[error("this session has no measure '{name}': it has {}{}", known.join(", "), how_to_count(name))]
    NoMeasure {
        /// The name.
        name: String,
        /// The session's measures.
        known: Vec<String>,
    },
    /// A view names more measures than it can show side by side.
    #[error("{0} measures are too many: a view shows up to {MAX_COUNTERS}")]
    TooManyMeasures(usize),
    /// The format needs individual samples, but a measure is a sum.
    #[error("the format {what} has samples one by one: measures are in {}", formats.join(", "))]
    OnlySamples {
        /// The format.
        what: &'static str,
        /// Formats that support measures.
        formats: Vec<&'static str>,
    },
    /// The table has samples, and the session has only exact measures.
    #[error("this session has no samples, which the table '{table}' shows: it has {}", known.join(", "))]
    NoSamples {
        /// The table.
        table: &'static str,
        /// The session's measures.
        known: Vec<String>,
    },
    /// The format has only one value for each stack.
    #[error("the format {what} has one measure: name one, or take {}", formats.join(", "))]
    OneMeasure {
        /// The format.
        what: &'static str,
        /// Formats that support several measures.
        formats: Vec<&'static str>,
    },
    /// A comparison and an annotation show exactly one measure.
    #[error("{what} is of one measure: name one")]
    SeveralMeasures {
        /// What shows it.
        what: &'static str,
    },
    /// A folder of the name options cannot be read.
    #[error("cannot look for symbols in {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file of the name options cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file of the name options is malformed.
    #[error("{}: {source}", path.display())]
    Symbols {
        /// The file.
        path: PathBuf,
        /// The parse error with its position.
        source: varid_symbolizer::Error,
    },
    /// The format needs individual samples, but the profile only has sums.
    #[error("the profile has no table of its samples: Options::sample_table makes one")]
    NoSampleTable,
    /// No function with samples has the requested name.
    #[error("{0}")]
    NoMethod(String),
    /// A source path cannot be read.
    #[error("cannot look for sources in {}: {source}; --source-path takes folders and archives (jar, zip, apk)", path.display())]
    SourcePath {
        /// The folder or archive.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The options select no sample in a session of a comparison.
    #[error("no sample of {} counts{}: there is nothing to compare", session.display(), selection_of(selection))]
    NothingCounts {
        /// The session's folder.
        session: PathBuf,
        /// The selection as on the command line. Empty if all samples count.
        selection: String,
    },
    /// The sessions of a comparison have different events.
    #[error("{} has the event {found}, and others have {expected}: they count different things; --event names an event that all have", session.display())]
    OtherEvent {
        /// The session's folder.
        session: PathBuf,
        /// Its event.
        found: String,
        /// The event of the previous sessions.
        expected: String,
    },
    /// One side of a comparison has no sessions.
    #[error("a comparison needs a session on each side")]
    NoSessions,
    /// The sums of periods of these sessions cannot be compared, only shares.
    #[error("only shares of these sessions can be compared: {0}")]
    NotAbsolute(String),
    /// The report cannot be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] std::io::Error),
}

fn selection_of(selection: &str) -> String {
    match selection {
        "" => String::new(),
        selection => format!(" by {selection}"),
    }
}

/// Returns a hint on how to record a measure that is only counted on request.
fn how_to_count(name: &str) -> &'static str {
    match name {
        "calls" | "returns" | "unwinds" => {
            "; 'varid record --mode count-calls' and 'varid start --mode count-calls' count calls"
        }
        _ => "",
    }
}
