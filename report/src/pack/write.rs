//! Writes a pack.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use varid_recording::{
    KeptFile, Manifest, RAW_DATA, SESSION_JSON, SYMBOLS, SessionReader, kept_file_of, open_regular,
    session_files,
};
use varid_symbolizer::{
    elf::{SymbolFile, SymbolFileLimits},
    hex,
};

use super::FOLDER;
use crate::{
    error::{Error, Result},
    name_options::NameOptions,
    naming::{ImageFile, each_symbol_file},
};

/// Limits for one file.
const LIMITS: SymbolFileLimits = SymbolFileLimits {
    names: 256 << 20,
    debug: 128 << 20,
};

/// Sparse files of at least this size are reduced to their symbols.
const LARGE: u64 = 1 << 20;

/// Summary of the packed symbols.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    /// Number of recorded files whose symbols are in the pack, including those that the session already had.
    pub named: usize,
    /// The other recorded files, with the reason.
    pub missing: Vec<(PathBuf, String)>,
}

/// Packs a session, with the symbols of the recorded files that `names` finds.
///
/// # Errors
///
/// The session cannot be read, or the pack cannot be written.
pub fn pack(session: &SessionReader, names: &NameOptions, out: impl Write) -> Result<Packed> {
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::default()));
    archive.sparse(false);
    let mut there = HashSet::new();
    for file in session_files(session.dir())? {
        // The manifest is written later with changes, and no report reads the raw kernel samples.
        if file != Path::new(SESSION_JSON) && file != Path::new(RAW_DATA) {
            add_file(&mut archive, session.dir(), &file)?;
            there.insert(file);
        }
    }
    let mut manifest = session.manifest().clone();
    let mut packed = Packed {
        named: manifest.kept.len(),
        ..Packed::default()
    };
    each_symbol_file(session, names, LIMITS, &mut |file, symbols| {
        let added = symbols.and_then(|symbols| contents(&symbols));
        match added {
            Ok(content) => {
                let kept = add_symbols(&mut archive, file, &content, &mut there)?;
                manifest.kept.push(kept);
                packed.named = packed.named.saturating_add(1);
            }
            Err(why) => packed.missing.push((file.path.clone(), why)),
        }
        Ok(())
    })?;
    add_manifest(&mut archive, &manifest)?;
    archive.into_inner()?.finish()?.flush()?;
    Ok(packed)
}

fn contents(symbols: &SymbolFile<'_>) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    symbols
        .write(&mut content)
        .map_err(|error| error.to_string())?;
    Ok(content)
}

/// Adds the symbols of a recorded file, unless `there` already has a file with this name and the same symbols.
fn add_symbols<W: Write>(
    archive: &mut tar::Builder<W>,
    file: &ImageFile,
    content: &[u8],
    there: &mut HashSet<PathBuf>,
) -> Result<KeptFile> {
    let kept = KeptFile {
        path: file.path.to_string_lossy().into_owned(),
        build_id: hex(&file.build_id),
        file: kept_file_of(content, &file.path),
    };
    if there.insert(PathBuf::from(&kept.file)) {
        let size = content.len() as u64;
        add(archive, Path::new(&kept.file), size, content)?;
    }
    Ok(kept)
}

fn add_manifest<W: Write>(archive: &mut tar::Builder<W>, manifest: &Manifest) -> Result<()> {
    let json = serde_json::to_vec_pretty(manifest).map_err(io::Error::from)?;
    add(archive, Path::new(SESSION_JSON), json.len() as u64, &*json)
}

/// Adds a file of the session.
fn add_file<W: Write>(archive: &mut tar::Builder<W>, folder: &Path, path: &Path) -> Result<()> {
    let at = folder.join(path);
    let read = |source| Error::File {
        path: at.clone(),
        source,
    };
    let file = open_regular(&at).map_err(read)?;
    let meta = file.metadata().map_err(read)?;
    let size = meta.len();
    /// The unit of a file's disk usage.
    const BLOCK: u64 = 512;
    let has_holes = size > LARGE && meta.blocks().saturating_mul(BLOCK) < size / 16;
    if has_holes
        && path.starts_with(SYMBOLS)
        && let Ok(symbols) = SymbolFile::of_part(&file, 0..size, &at.to_string_lossy(), LIMITS)
        && let Ok(content) = contents(&symbols)
    {
        return add(archive, path, content.len() as u64, &*content);
    }
    add(archive, path, size, Exact { file, left: size })
}

fn add<W: Write>(
    archive: &mut tar::Builder<W>,
    path: &Path,
    size: u64,
    content: impl Read,
) -> Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o600);
    Ok(archive.append_data(&mut header, Path::new(FOLDER).join(path), content)?)
}

/// Reads exactly this many bytes of a file, which may grow or shrink meanwhile.
struct Exact {
    file: File,
    left: u64,
}

impl Read for Exact {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let end = most.min(buffer.len());
        let read = self.file.read(buffer.get_mut(..end).unwrap_or_default())?;
        if read == 0 && end > 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}
