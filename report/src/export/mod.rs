//! How does a profile get into other viewers?
//!
//! | question | file |
//! |---|---|
//! | what do all of them write | `walk` |
//! | folded stacks, a flame graph | `folded`, `flamegraph` |

mod folded;
mod walk;

use std::io::Write;

use walk::Walk;

use crate::{error::Result, profile::Profile, view::PercentOf, weights::EventId};

/// A format of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Folded stacks, as flamegraph.pl and speedscope read them.
    Folded,
}

impl ExportFormat {
    /// Whether it has the samples one by one: [`Options::sample_table`](crate::Options::sample_table).
    #[must_use]
    pub const fn has_samples(self) -> bool {
        match self {
            Self::Folded => false,
        }
    }

    /// Whether it is something else than text.
    #[must_use]
    pub const fn is_binary(self) -> bool {
        match self {
            Self::Folded => false,
        }
    }

    /// Whether it has source lines: [`NameOptions::lines`](crate::NameOptions::lines).
    #[must_use]
    pub const fn has_lines(self) -> bool {
        match self {
            Self::Folded => false,
        }
    }
}

/// Writes the samples of an event, of the first one if it is none. `weigh` says what a stack's value is in formats that have one only.
///
/// # Errors
///
/// Those of `out`; the profile does not have the event, or not the table of samples that the format has.
pub fn export(
    profile: &Profile,
    (event, weigh): (Option<EventId>, PercentOf),
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let walk = Walk::new(profile, event, weigh)?;
    match format {
        ExportFormat::Folded => folded::write(&walk, out)?,
    }
    Ok(())
}
