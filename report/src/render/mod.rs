//! How is a view written?

mod csv;
mod json;
mod text;

use std::io::Write;

use crate::{columns::OutputFormat, error::Result, profile::Profile, scope::Scope, view::View};

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
