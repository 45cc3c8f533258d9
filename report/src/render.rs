//! In which form is a view written?

use std::io::Write;

use crate::{csv, error::Result, json, profile::Profile, text, view::View};

/// How a view is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: `schema/report.schema.json`.
    Json,
    /// For spreadsheets: the rows, RFC 4180, with a header.
    Csv,
}

/// Writes a view of a profile.
///
/// # Errors
///
/// Those of `out`.
pub fn render(profile: &Profile, view: &View, format: Format, out: &mut dyn Write) -> Result<()> {
    match format {
        Format::Text => text::write(profile, view, out)?,
        Format::Json => json::write(profile, view, out)?,
        Format::Csv => csv::write(profile, view, out)?,
    }
    Ok(())
}
