//! How is a view written?

pub(crate) mod csv;
mod json;
pub(crate) mod text;

use std::io::Write;

use crate::{columns::OutputFormat, error::Result, profile::Profile, scope::Scope, view::View};

/// Writes what the text of a view says of the recording and of what is missing in it.
pub(crate) fn facts(scope: &Scope, out: &mut dyn Write) -> std::io::Result<()> {
    text::facts(scope, out)
}

/// Writes a view of a profile.
///
/// # Errors
///
/// Those of `out`; the view is of an event that the profile does not have.
pub fn render(
    profile: &Profile,
    view: &View,
    format: OutputFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let scope = Scope::new(profile, view)?;
    match format {
        OutputFormat::Text => text::write(&scope, out)?,
        OutputFormat::Json => json::write(&scope, out)?,
        OutputFormat::Csv => csv::write(&scope, out)?,
    }
    Ok(())
}
