//! Profiles in the file formats of other viewers.
//!
//! | question | file |
//! |---|---|
//! | what do all of them write | `walk` |
//! | how does one viewer read it | `folded`, `flamegraph`, `html`, `pprof`, `firefox`, `speedscope`, `json_lines`, `callgrind`, `dot`, `chrome`, `perfetto`, `otlp` |
//! | which number has what in a table of a format | `interner`, `strings` |
//! | which colour has a layer | `palette` |
//! | how is text, a list or a large message written | `markup`, `json`, `message_writer` |

mod callgrind;
mod chrome;
mod dot;
mod firefox;
mod flamegraph;
mod folded;
mod html;
mod interner;
mod json;
mod json_lines;
mod markup;
mod message_writer;
mod otlp;
mod palette;
mod perfetto;
mod pprof;
mod speedscope;
mod strings;
mod walk;

use std::{io::Write, path::PathBuf};

pub(crate) use html::write_head;
pub(crate) use markup::escape;
use walk::Walk;

use crate::{
    error::{Error, Result},
    profile::Profile,
    view::PercentOf,
    weights::EventId,
};

/// A file format of another program. A format is a file in this folder and a line in [`FORMATS`].
#[derive(Debug)]
pub struct ExportFormat {
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// What it is and which program reads it, for help texts.
    pub about: &'static str,
    /// Endings of file names that select it.
    pub endings: &'static [&'static str],
    /// What a profile needs for it.
    pub needs: &'static [Need],
    /// Which measures it can have.
    pub measures: FormatMeasures,
    /// Whether a terminal can show it.
    pub content: Content,
    /// Writes a profile.
    write: fn(&Input<'_>, &mut dyn Write) -> Result<()>,
}

/// What an export format needs of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Each sample by itself: [`Options::sample_table`](crate::Options::sample_table).
    Samples,
    /// Source lines: [`NameOptions::lines`](crate::NameOptions::lines). Without them the format is written without lines.
    Lines,
    /// Methods' code: [`Options::sampled_addresses`](crate::Options::sampled_addresses). Without it the format is written without code.
    Code,
    /// All events of a session; other formats have one.
    AllEvents,
}

/// Which measures a format can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatMeasures {
    /// Samples only: it has them one by one.
    Samples,
    /// Samples, or one measure.
    One,
    /// Samples, or several measures.
    Several,
}

/// What a file consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text,
    /// Anything else.
    Binary,
}

/// All formats, in the order of help texts.
static FORMATS: &[&ExportFormat] = &[
    &folded::FORMAT,
    &flamegraph::FORMAT,
    &html::FORMAT,
    &pprof::FORMAT,
    &firefox::FORMAT,
    &speedscope::FORMAT,
    &json_lines::FORMAT,
    &callgrind::FORMAT,
    &dot::FORMAT,
    &chrome::FORMAT,
    &perfetto::FORMAT,
    &otlp::FORMAT,
];

impl ExportFormat {
    /// Returns all formats.
    #[must_use]
    pub fn all() -> &'static [&'static Self] {
        FORMATS
    }

    /// Returns the format with this name or alias.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let mut formats = FORMATS.iter().copied();
        formats.find(|format| format.name == name || format.aliases.contains(&name))
    }

    /// Returns the format that the ending of a file's name selects.
    #[must_use]
    pub fn of_file(name: &str) -> Option<&'static Self> {
        let is_its = |format: &&Self| format.endings.iter().any(|end| name.ends_with(end));
        FORMATS.iter().copied().find(is_its)
    }

    /// Refuses measures that the format cannot have.
    fn check(&self, measures: &[String]) -> Result<()> {
        let (what, several) = (self.name, measures.len() > 1);
        let formats = || {
            let can = |format: &&&Self| match format.measures {
                FormatMeasures::Samples => false,
                FormatMeasures::One => !several,
                FormatMeasures::Several => true,
            };
            FORMATS
                .iter()
                .filter(can)
                .map(|format| format.name)
                .collect()
        };
        match (measures, self.measures) {
            ([], _) | ([_], FormatMeasures::One) | (_, FormatMeasures::Several) => Ok(()),
            (_, FormatMeasures::Samples) => Err(Error::OnlySamples {
                what,
                formats: formats(),
            }),
            (_, FormatMeasures::One) => Err(Error::OneMeasure {
                what,
                formats: formats(),
            }),
        }
    }

    /// Returns true if it needs this of a profile.
    #[must_use]
    pub fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
    }
}

/// What a format is written from.
struct Input<'p> {
    profile: &'p Profile,
    request: &'p ExportRequest,
    walk: Walk<'p>,
}

/// What is exported. The default is the first event, weighed by its periods; of a page all events.
#[derive(Debug, Clone, Default)]
pub struct ExportRequest {
    /// Whose samples; none: those of the profile's first event; a page has all events, of which one is chosen in it.
    pub event: Option<EventId>,
    /// The names of the measures, of [`Profile::measures`]; empty: samples.
    pub measures: Vec<String>,
    /// What a stack's value is, of samples in formats that have one value only.
    pub weigh: PercentOf,
    /// Folders and archives that have the sources, for formats that have code.
    pub sources: Vec<PathBuf>,
}

/// Writes the samples of an event.
///
/// # Errors
///
/// Writing fails; the profile does not have the event, the measures, or the table of samples that the format needs; the format cannot have the
/// measures; sources cannot be searched.
pub fn export(
    profile: &Profile,
    request: &ExportRequest,
    format: &ExportFormat,
    out: &mut dyn Write,
) -> Result<()> {
    format.check(&request.measures)?;
    let walk = Walk::new(profile, request.event, request)?;
    let input = Input {
        profile,
        request,
        walk,
    };
    (format.write)(&input, out)
}
