//! Collects the symbols of the recorded files that are on this machine.

use std::path::Path;

use varid_model::is_own_memory;
use varid_recording::{ImageKind, SessionReader, SessionRecord};
use varid_symbolizer::elf::{SymbolFile, SymbolFileLimits};

use super::{
    images::{ImageFile, ImageTable},
    recorded_files::{RecordedFiles, RecordedPath},
};
use crate::{error::Result, name_options::NameOptions};

/// A callback for each recorded file, with its symbols or the reason why there are none.
pub type Each<'e> =
    &'e mut dyn FnMut(&ImageFile, Result<SymbolFile<'static>, String>) -> Result<()>;

/// Visits each ELF file that a session maps and does not contain.
///
/// # Errors
///
/// The session or a folder of `names` cannot be read, or `each` fails.
pub fn each_symbol_file(
    session: &SessionReader,
    names: &NameOptions,
    limits: SymbolFileLimits,
    each: Each<'_>,
) -> Result<()> {
    let files = || RecordedFiles::new(names, session.manifest());
    let mut images = ImageTable::new(session.dir(), session.manifest(), files()?);
    let files = files()?.of_this_machine();
    let records = session.has_records().then(|| session.records());
    // Reports also ignore the records after damage.
    let records = records.transpose()?.into_iter().flatten();
    for record in records.map_while(Result::ok) {
        match record {
            SessionRecord::Mapping(mapping) if !mapping.kernel => _ = images.intern(&mapping),
            _ => {}
        }
    }
    for file in images.files() {
        let is_elsewhere = file.kind == ImageKind::Elf && !file.in_session && file.kept.is_none();
        if is_elsewhere && file.path.is_absolute() && !is_own_memory(&file.path) {
            let symbols = file.open(&files).and_then(|source| {
                let path = RecordedPath::of(Path::new(source.elf.path()));
                SymbolFile::open(path.file, path.library, limits).map_err(|error| error.to_string())
            });
            each(file, symbols)?;
        }
    }
    Ok(())
}
