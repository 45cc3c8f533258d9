//! `varid pack`: writes a session as one file.

use crate::cli::PackArgs;
use crate::{output, output_file, sessions};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use varid_recording::SessionReader;
use varid_report::{Packed, pack};

/// Maximum number of files without symbols that are listed.
const MAX_NAMED: usize = 8;

/// Writes the file.
pub fn run(args: &PackArgs) -> anyhow::Result<ExitCode> {
    let folder = args.input.folder()?;
    anyhow::ensure!(
        !sessions::is_being_recorded(&folder),
        "{} is being recorded: it can be packed when it is complete",
        folder.display()
    );
    let output = args.output.clone().unwrap_or_else(|| {
        let real = std::fs::canonicalize(&folder).unwrap_or(folder.clone());
        PathBuf::from(format!("{}.tar.gz", sessions::file_name(&real)))
    });
    anyhow::ensure!(
        !output_file::is_terminal(&output),
        "a pack is not text: name a file with -o FILE"
    );
    let session = SessionReader::open(&folder)?;
    let mut packed = Packed::default();
    let write = |out: &mut dyn Write| -> varid_report::Result<()> {
        packed = pack(&session, &args.names(), out)?;
        Ok(())
    };
    let size = output_file::write(&output, &[], write)?;
    let Packed { named, missing } = packed;
    for (path, why) in missing.iter().take(MAX_NAMED) {
        output::notice(&format!("note: no symbols of {}: {why}", path.display()));
    }
    if let Some(more) = missing
        .len()
        .checked_sub(MAX_NAMED)
        .filter(|more| *more > 0)
    {
        output::notice(&format!("note: nor of {more} others"));
    }
    if let Some(size) = size {
        let (shown, size) = (output.display(), output::size(size));
        output::notice(&format!(
            "varid: {shown}: {size}, with the symbols of {named} files; 'varid report {shown}' shows it anywhere"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
