//! What can go wrong with a report.

use std::path::PathBuf;

use crate::weights::MAX_COUNTERS;

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
    /// No measure has a name that a view gives.
    #[error("this session has no measure '{name}': it has {}{}", known.join(", "), how_to_count(name))]
    NoMeasure {
        /// The name.
        name: String,
        /// The session's measures.
        known: Vec<String>,
    },
    /// A view shows a few measures side by side.
    #[error("{0} measures are too many: a view shows up to {MAX_COUNTERS}")]
    TooManyMeasures(usize),
    /// A format has samples one by one, and a measure is a sum.
    #[error("the format {what} has samples one by one: measures are in {}", formats.join(", "))]
    OnlySamples {
        /// The format.
        what: &'static str,
        /// Formats that can have the measures.
        formats: Vec<&'static str>,
    },
    /// A format has one value for each stack.
    #[error("the format {what} has one measure: name one, or take {}", formats.join(", "))]
    OneMeasure {
        /// The format.
        what: &'static str,
        /// Formats that can have the measures.
        formats: Vec<&'static str>,
    },
    /// A comparison shows one measure.
    #[error("a comparison is of one measure: name one")]
    OneMeasureInDiff,
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
    /// A session of a comparison has no samples that count.
    #[error("no sample of {} counts{}: there is nothing to compare", session.display(), selection_of(selection))]
    NothingCounts {
        /// The session's folder.
        session: PathBuf,
        /// Which samples count, as on the command line; empty: all.
        selection: String,
    },
    /// Sessions of a comparison have different events.
    #[error("{} has the event {found}, and others have {expected}: they count different things; --event names an event that all have", session.display())]
    OtherEvent {
        /// The session's folder.
        session: PathBuf,
        /// Its event.
        found: String,
        /// The event of the sessions before it.
        expected: String,
    },
    /// A comparison has no session on one of its sides.
    #[error("a comparison needs a session on each side")]
    NoSessions,
    /// Sums of periods do not say how much slower one session is than another.
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

/// How a measure gets into a session, of those that a recording counts on request.
fn how_to_count(name: &str) -> &'static str {
    match name {
        "calls" | "returns" | "unwinds" => {
            "; 'varid record --mode count-calls' and 'varid start --mode count-calls' count calls"
        }
        _ => "",
    }
}
