//! Finds the recorded dex file.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use varid_symbolizer::{container, dex::DexFile, hex};

use crate::{name_options::NameOptions, naming::inside};

/// The largest file that can contain dex files: offsets in an archive have 32 bits.
const MAX_FILE: u64 = 1 << 32;
/// The most files in folders of `--symbols` that are searched.
const MAX_FILES: usize = 4096;
/// The deepest nesting of these folders.
const MAX_DEPTH: usize = 16;
/// Extensions of files that can contain dex files.
const NAMES: [&str; 8] = ["dex", "apk", "jar", "aar", "zip", "vdex", "odex", "oat"];

/// Finds the recorded dex file by the SHA-1 of its content, whatever its name. Also returns its path.
///
/// # Errors
///
/// It was not found; the error lists the searched places.
pub fn find(
    recorded: Option<&Path>,
    sha1: &[u8],
    names: &NameOptions,
    sources: &[PathBuf],
) -> Result<(DexFile<'static>, String), String> {
    let mut problems = Vec::new();
    let below = names
        .symfs
        .as_deref()
        .and_then(|root| inside(root, recorded?));
    let first = below.into_iter().chain(recorded.map(Path::to_owned));
    let archives = sources.iter().filter(|path| path.is_file()).cloned();
    let below = names.symbols.iter().flat_map(|folder| files_below(folder));
    for path in first.chain(archives).chain(below) {
        match in_file(&path, sha1) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => problems.push(format!("{} has other content", path.display())),
            Err(why) => problems.push(format!("{}: {why}", path.display())),
        }
    }
    // The first places are the most likely ones.
    problems.truncate(3);
    Err(format!(
        "the dex file of content {} is not kept in a session and was not found ({}); --symbols DIR with the recorded dex file, APK or jar",
        hex(sha1),
        problems.join("; ")
    ))
}

/// Finds the dex file with this content in a file.
fn in_file(path: &Path, sha1: &[u8]) -> Result<Option<(DexFile<'static>, String)>, String> {
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("not a regular file".to_owned());
    }
    if meta.len() > MAX_FILE {
        return Err(format!("{} bytes are more than are read", meta.len()));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    let shown = path.display().to_string();
    let entries = container::dex_files(&shown, &bytes).map_err(|error| error.to_string())?;
    for entry in entries.into_iter().flatten() {
        let Ok(dex) = DexFile::parse(&entry.bytes) else {
            continue;
        };
        if dex.content_sha1() != *sha1 {
            continue;
        }
        let whole = entry.bytes.len() == bytes.len();
        let place = match whole {
            true => shown,
            false => format!("{shown}!{}", entry.name),
        };
        let own = DexFile::from_vec(entry.bytes.into_owned());
        return own
            .map(|dex| Some((dex, place)))
            .map_err(|error| error.to_string());
    }
    Ok(None)
}

/// Returns the files below a folder that may contain dex files.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0usize)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            // Do not follow links, which may form cycles.
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                if depth < MAX_DEPTH && folders.len() < MAX_FILES {
                    folders.push((path, depth.saturating_add(1)));
                }
                continue;
            }
            let extension = path.extension().and_then(|name| name.to_str());
            let may = extension.is_some_and(|name| NAMES.contains(&name));
            if may && kind.is_ok_and(|kind| kind.is_file()) {
                found.push(path);
            }
            if found.len() >= MAX_FILES {
                return found;
            }
        }
    }
    found.sort();
    found
}
