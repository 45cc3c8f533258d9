//! `varid compress`: compresses a session.

use super::record::COMPRESSED;
use crate::cli::selection::InputArgs;
use crate::output::{self, size};
use std::process::ExitCode;
use varid_recording::{Rewritten, rewrite};

/// Compresses a session's records, or decompresses them.
pub fn run(input: &InputArgs, undo: bool) -> anyhow::Result<ExitCode> {
    let folder = input.folder()?;
    let Rewritten { before, after } = rewrite(&folder, !undo)?;
    let change = format!(
        "{}: {} -> {}\n",
        folder.display(),
        size(before),
        size(after)
    );
    output::text(&change)?;
    if !undo {
        output::text(&format!("{COMPRESSED}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
