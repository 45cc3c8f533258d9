//! Exports profiles to the file formats of other viewers.
//!
//! | question | file |
//! |---|---|
//! | what do all of them write | `walk` |
//! | how does one viewer read it | `folded`, `flamegraph`, `html`, `pprof`, `firefox`, `speedscope`, `json_lines`, `callgrind`, `dot`, `chrome`, `perfetto`, `otlp`, `xml` |
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
mod xml;

use std::{io::Write, path::PathBuf};

pub(crate) use html::write_head;
pub(crate) use markup::escape;
use varid_recording::Contexts;
use walk::Walk;

use crate::{
    error::{Error, Result},
    measures::ShownMeasures,
    profile::Profile,
    view::PercentOf,
    weights::EventId,
};

/// A file format of another program. Each format has a file in this folder and a line in [`FORMATS`].
#[derive(Debug)]
pub struct ExportFormat {
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// Description and reader of the format, for help texts.
    pub about: &'static str,
    /// File extensions that select it.
    pub endings: &'static [&'static str],
    /// The data that a profile needs for it.
    pub needs: &'static [Need],
    /// The measures that it supports.
    pub measures: FormatMeasures,
    /// Whether it is text.
    pub content: Content,
    /// Writes a profile.
    write: fn(&Input<'_>, &mut dyn Write) -> Result<()>,
}

/// Data that an export format needs in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Individual samples: [`Options::sample_table`](crate::Options::sample_table).
    Samples,
    /// Source lines: [`NameOptions::lines`](crate::NameOptions::lines). They are optional: without them, the format is
    /// written without lines.
    Lines,
    /// Code of methods: [`Options::sampled_addresses`](crate::Options::sampled_addresses). It is optional: without it,
    /// the format is written without code.
    Code,
    /// The session's calling contexts: [`ExportRequest::contexts`]. Without them, the format has an empty tree.
    Contexts,
    /// All events of a session. Other formats have one event.
    AllEvents,
}

/// The measures that a format supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatMeasures {
    /// Samples only, because it contains them individually.
    Samples,
    /// Samples, or one measure.
    One,
    /// Samples, or several measures.
    Several,
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text,
    /// Binary data.
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
    &xml::FORMAT,
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

    /// Returns the format for a file extension.
    #[must_use]
    pub fn of_file(name: &str) -> Option<&'static Self> {
        let is_its = |format: &&Self| format.endings.iter().any(|end| name.ends_with(end));
        FORMATS.iter().copied().find(is_its)
    }

    /// Rejects measures that the format does not support.
    fn check(&self, measures: &ShownMeasures) -> Result<()> {
        let (what, several) = (self.name, measures.list.len() > 1);
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
        match self.measures {
            _ if measures.are_samples() => Ok(()),
            FormatMeasures::Several => Ok(()),
            FormatMeasures::One if !several => Ok(()),
            FormatMeasures::One => Err(Error::OneMeasure {
                what,
                formats: formats(),
            }),
            FormatMeasures::Samples => Err(Error::OnlySamples {
                what,
                formats: formats(),
            }),
        }
    }

    /// Returns true if the format needs this data.
    #[must_use]
    pub fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
    }
}

/// The input of a format writer.
struct Input<'p> {
    profile: &'p Profile,
    request: &'p ExportRequest,
    walk: Walk<'p>,
}

/// The request for an export. The default is the first event, weighed by periods. A page contains all events.
#[derive(Debug, Clone, Default)]
pub struct ExportRequest {
    /// The event. None selects the profile's first event. A page contains all events and lets the user select one.
    pub event: Option<EventId>,
    /// The names of the measures, from [`Profile::measures`]. Empty for samples.
    pub measures: Vec<String>,
    /// The value of a stack for samples, in formats that have only one value.
    pub weigh: PercentOf,
    /// The calling contexts of the profile's session, for formats that need them.
    pub contexts: Option<Contexts>,
    /// Folders and archives with sources, for formats with code.
    pub sources: Vec<PathBuf>,
}

/// Exports an event.
///
/// # Errors
///
/// Writing fails; the profile does not have the event, the measures, or the table of samples that the format needs; the
/// format does not support the measures; sources cannot be read.
pub fn export(
    profile: &Profile,
    request: &ExportRequest,
    format: &ExportFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let walk = Walk::new(profile, request.event, request)?;
    format.check(&walk.measures)?;
    let input = Input {
        profile,
        request,
        walk,
    };
    (format.write)(&input, out)
}
