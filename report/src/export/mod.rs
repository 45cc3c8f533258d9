//! How does a profile get into other viewers?
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

use crate::{error::Result, profile::Profile, view::PercentOf, weights::EventId};

/// A format of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Folded stacks, as flamegraph.pl and speedscope read them.
    Folded,
    /// A flame graph as an SVG file that zooms and searches in a browser.
    Flamegraph,
    /// A page with all views, which a browser shows without network.
    Html,
    /// A profile for pprof.
    Pprof,
    /// A profile for the Firefox Profiler.
    Firefox,
    /// A profile for speedscope.
    Speedscope,
    /// An object in JSON for each sample.
    JsonLines,
    /// A profile for KCachegrind and callgrind_annotate.
    Callgrind,
    /// A call graph for graphviz.
    Dot,
    /// Trace events, as chrome://tracing and Perfetto show them.
    Chrome,
    /// A trace for Perfetto.
    Perfetto,
    /// A profile for OpenTelemetry.
    Otlp,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [Self; 12] = [
        Self::Folded,
        Self::Flamegraph,
        Self::Html,
        Self::Pprof,
        Self::Firefox,
        Self::Speedscope,
        Self::JsonLines,
        Self::Callgrind,
        Self::Dot,
        Self::Chrome,
        Self::Perfetto,
        Self::Otlp,
    ];

    /// Whether it has the samples one by one: [`Options::sample_table`](crate::Options::sample_table).
    #[must_use]
    pub const fn has_samples(self) -> bool {
        matches!(
            self,
            Self::Html
                | Self::Firefox
                | Self::Speedscope
                | Self::JsonLines
                | Self::Chrome
                | Self::Perfetto
        )
    }

    /// Whether it has methods' code, if the profile has what is needed for it: [`Options::sampled_addresses`](crate::Options::sampled_addresses).
    #[must_use]
    pub const fn has_code(self) -> bool {
        matches!(self, Self::Html)
    }

    /// Whether it is something else than text.
    #[must_use]
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Pprof | Self::Perfetto | Self::Otlp)
    }

    /// Whether it has source lines: [`NameOptions::lines`](crate::NameOptions::lines).
    #[must_use]
    pub const fn has_lines(self) -> bool {
        matches!(
            self,
            Self::Html
                | Self::Pprof
                | Self::Firefox
                | Self::JsonLines
                | Self::Callgrind
                | Self::Perfetto
                | Self::Otlp
        )
    }
}

/// What is exported. The default is the first event, weighed by its periods; of a page all events.
#[derive(Debug, Clone, Default)]
pub struct ExportRequest {
    /// Whose samples; none: those of the profile's first event; a page has all events, of which one is chosen in it.
    pub event: Option<EventId>,
    /// What a stack's value is, in formats that have one only.
    pub weigh: PercentOf,
    /// Folders and archives that have the sources, for formats that have code.
    pub sources: Vec<PathBuf>,
}

/// Writes the samples of an event.
///
/// # Errors
///
/// Those of `out`; the profile does not have the event, or not the table of samples that the format has; sources cannot be looked for.
pub fn export(
    profile: &Profile,
    request: &ExportRequest,
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let walk = Walk::new(profile, request.event, request.weigh)?;
    match format {
        ExportFormat::Folded => folded::write(&walk, out)?,
        ExportFormat::Flamegraph => flamegraph::write(&walk, out)?,
        ExportFormat::Html => html::write(profile, request, out)?,
        ExportFormat::Pprof => pprof::write(&walk, out)?,
        ExportFormat::Firefox => firefox::write(&walk, out)?,
        ExportFormat::Speedscope => speedscope::write(&walk, out)?,
        ExportFormat::JsonLines => json_lines::write(&walk, out)?,
        ExportFormat::Callgrind => callgrind::write(&walk, out)?,
        ExportFormat::Dot => dot::write(&walk, out)?,
        ExportFormat::Chrome => chrome::write(&walk, out)?,
        ExportFormat::Perfetto => perfetto::write(&walk, out)?,
        ExportFormat::Otlp => otlp::write(&walk, out)?,
    }
    Ok(())
}
