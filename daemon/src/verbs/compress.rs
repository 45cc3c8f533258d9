//! `varid compress`: changes the form of a session's records.

use super::record::COMPRESSED;
use crate::cli::CompressArgs;
use crate::output::{self, size};
use std::process::ExitCode;
use varid_recording::{RecordsForm, Rewritten, rewrite};

/// The note for a session with compact records.
const COMPACT: &str =
    "its records are compact: only varid reads them; 'varid compress --undo' gives perf.data back";

/// Compresses a session's records, or makes them plain.
pub fn run(args: &CompressArgs) -> anyhow::Result<ExitCode> {
    let folder = args.input.folder()?;
    let form = args.form();
    let Rewritten { before, after } = rewrite(&folder, form)?;
    let change = format!(
        "{}: {} -> {}\n",
        folder.display(),
        size(before),
        size(after)
    );
    output::text(&change)?;
    match form {
        RecordsForm::Plain => {}
        RecordsForm::Compressed => output::text(&format!("{COMPRESSED}\n"))?,
        RecordsForm::Compact => output::text(&format!("{COMPACT}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}
