//! Output: files that the user names.

use anyhow::Context;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Creates or replaces a file and writes it whole.
///
/// # Errors
///
/// Those of creating and of writing it, with its path.
pub fn write<E>(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> anyhow::Result<()>
where
    anyhow::Error: From<E>,
{
    let shown = path.display();
    let file = File::create(path).with_context(|| format!("cannot create {shown}"))?;
    let mut file = BufWriter::with_capacity(1 << 16, file);
    let written = content(&mut file).map_err(anyhow::Error::from);
    let written = written.and_then(|()| Ok(file.flush()?));
    written.with_context(|| format!("cannot write {shown}"))
}
