//! Opens a library in an archive (APK) by the offset at which it is mapped, or by its name.

use std::fs::File;
use std::path::Path;

use object::ReadCache;

use super::reader::ElfReader;
use crate::container::{ContainerEntry, zip};
use crate::{Error, Result};

/// The largest library that is read from an archive by name, in bytes.
const MAX_LIBRARY: u64 = 1 << 28;

/// Opens the ELF file that contains the byte at `offset` of a file: the file itself, or an uncompressed entry of an archive, as Android
/// maps libraries. The name of such an entry is `base.apk!lib/…/libx.so`.
pub(super) fn open_at(path: &Path, offset: u64) -> Result<ElfReader<'static>> {
    let holds = |entry: &ContainerEntry| {
        offset
            .checked_sub(entry.offset)
            .is_some_and(|within| within < entry.len)
    };
    match find(path, holds, || format!("at offset {offset:#x}"))? {
        Found::File(image) => Ok(image),
        Found::Entry(file, entry, name) => {
            let part = entry.offset..entry.offset.saturating_add(entry.len);
            ElfReader::from_part(Box::new(file), part, &name)
        }
    }
}

/// Opens an ELF file by its name in the archive. Offsets count from the start of the library.
pub(super) fn open_entry(path: &Path, entry: &str) -> Result<ElfReader<'static>> {
    let is_named = |found: &ContainerEntry| found.name == entry;
    match find(path, is_named, || format!("called {entry}"))? {
        Found::File(image) => Ok(image),
        Found::Entry(_, entry, name) if entry.len > MAX_LIBRARY => Err(Error::Elf {
            file: name,
            part: "size",
            problem: format!("{} bytes are more than are read", entry.len),
        }),
        Found::Entry(file, entry, name) => {
            let bytes = entry.read(&name, &ReadCache::new(file))?.into_owned();
            ElfReader::from_bytes(bytes, &name)
        }
    }
}

/// Returns the bytes of an uncompressed library in an archive, or of the file itself if it is not an archive.
///
/// # Errors
/// [`Error::Io`] if it cannot be read, [`Error::Elf`] or [`Error::Container`] if the archive has no such library.
pub fn library_in(path: &Path, entry: &str) -> Result<Vec<u8>> {
    let is_named = |found: &ContainerEntry| found.name == entry;
    match find(path, is_named, || format!("called {entry}"))? {
        Found::File(_) => std::fs::read(path).map_err(Error::io("read", path)),
        Found::Entry(file, entry, name) => {
            Ok(entry.read(&name, &ReadCache::new(file))?.into_owned())
        }
    }
}

/// The ELF file, or the entry that holds it.
enum Found {
    /// The file is not an archive.
    File(ElfReader<'static>),
    /// A part of the file, and its name.
    Entry(File, ContainerEntry, String),
}

fn find(
    path: &Path,
    matches: impl Fn(&ContainerEntry) -> bool,
    which: impl Fn() -> String,
) -> Result<Found> {
    let name = path.display().to_string();
    let whole = ElfReader::open(path);
    let Err(Error::Elf { .. }) = whole else {
        return whole.map(Found::File);
    };
    let file = File::open(path).map_err(Error::io("open", path))?;
    let entries = {
        let data = ReadCache::new(&file);
        zip::entries(&name, &data, |_| true)
    };
    let Ok(entries) = entries else {
        // It is neither ELF nor an archive. The first error is more helpful.
        return whole.map(Found::File);
    };
    entries
        .into_iter()
        .flatten()
        .find(|entry| entry.compression.is_none() && matches(entry))
        .ok_or_else(|| Error::Elf {
            file: name.clone(),
            part: "archive",
            problem: format!("has no uncompressed entry {}", which()),
        })
        .map(|entry| {
            let name = format!("{name}!{}", entry.name);
            Found::Entry(file, entry, name)
        })
}
