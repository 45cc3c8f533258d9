//! Renders views.

pub(crate) mod csv;
mod json;
pub(crate) mod text;

use std::io::Write;

use crate::{
    columns::OutputFormat,
    error::{Error, Result},
    profile::Profile,
    scope::Scope,
    view::View,
};

/// Writes the head and the foot of a view's text.
pub(crate) fn facts(scope: &Scope, out: &mut dyn Write) -> std::io::Result<()> {
    text::facts(scope, out)
}

/// Writes a view of a profile.
///
/// # Errors
///
/// Writing to `out` fails, or the profile does not have the view's event, its measures or the samples of its table.
pub fn render(
    profile: &Profile,
    view: &View,
    format: OutputFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let scope = Scope::new(profile, view)?;
    if view.shows_samples() && profile.default_measure().is_some() {
        return Err(Error::NoSamples {
            table: view.table.name,
            known: profile
                .context_measures()
                .map(|measure| measure.name)
                .collect(),
        });
    }
    match format {
        OutputFormat::Text => text::write(&scope, out)?,
        OutputFormat::Json => json::write(&scope, out)?,
        OutputFormat::Csv => csv::write(&scope, out)?,
    }
    Ok(())
}
