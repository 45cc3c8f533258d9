//! Keeps files of what was recorded in the session's folder of symbols.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use crate::{SYMBOLS, error::Error, plain_name::plain_name};

/// The name of the file that is being written.
const NEW: &str = "kept.new";

/// A session's folder of symbols.
#[derive(Debug, Clone, Copy)]
pub struct SymbolFolder<'p> {
    /// The path that leads to it.
    pub path: &'p Path,
    /// The path that errors name.
    pub shown: &'p Path,
}

/// Keeps what `write` writes as `ID/NAME` in a folder of symbols. The id is the SHA-1 of the content. Returns the path relative to the
/// session, and the bytes that the file takes: 0 if it was already there.
///
/// # Errors
///
/// The file cannot be written.
pub fn keep<E: From<Error>>(
    symbols: SymbolFolder<'_>,
    original: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(String, u64), E> {
    let failed = |action| {
        let path = symbols.shown.join(NEW);
        move |error| E::from(Error::io(action, path)(error))
    };
    let new = symbols.path.join(NEW);
    remove(&new).map_err(failed("remove"))?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .map_err(failed("create"))?;
    let mut content = Content {
        file: BufWriter::new(file),
        digest: sha1_smol::Sha1::new(),
        size: 0,
    };
    let written = write(&mut content)
        .and_then(|()| content.flush().map_err(failed("write")))
        .map(|()| (content.digest.digest().to_string(), content.size));
    let placed = written.and_then(|(id, size)| {
        let name = plain_name(original);
        let is_new = place(&new, &symbols.path.join(&id), &name).map_err(failed("name"))?;
        let size = if is_new { size } else { 0 };
        Ok((format!("{SYMBOLS}/{id}/{name}"), size))
    });
    if placed.is_err() {
        // The next call removes what is left.
        let _ = remove(&new);
    }
    placed
}

/// Returns where a file with this content, which names addresses of `original`, is kept: its path relative to the session's folder.
#[must_use]
pub fn kept_file_of(content: &[u8], original: &Path) -> String {
    let id = sha1_smol::Sha1::from(content).digest();
    format!("{SYMBOLS}/{id}/{}", plain_name(original))
}

/// Moves a file to its place. Returns false if it was already there.
fn place(new: &Path, folder: &Path, name: &str) -> io::Result<bool> {
    make_folder(folder)?;
    let place = folder.join(name);
    if place.try_exists()? {
        remove(new)?;
        return Ok(false);
    }
    let moved = std::fs::rename(new, place);
    if moved.is_err() {
        // The folder stays if it has a file of another name.
        let _ = std::fs::remove_dir(folder);
    }
    moved.map(|()| true)
}

/// Creates a folder for this user only, unless it exists.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A file, with the hash and the size of what was written to it.
struct Content {
    file: BufWriter<File>,
    digest: sha1_smol::Sha1,
    size: u64,
}

impl Write for Content {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        self.size = self.size.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(symbols: &Path, original: &str, text: &str) -> (String, u64) {
        let write = |out: &mut dyn Write| {
            out.write_all(text.as_bytes())
                .map_err(Error::io("write", "x"))
        };
        keep(both(symbols), Path::new(original), write).unwrap()
    }

    fn both(path: &Path) -> SymbolFolder<'_> {
        SymbolFolder { path, shown: path }
    }

    #[test]
    fn what_is_equal_is_kept_once_and_what_has_the_same_name_is_not_mixed_up() {
        let folder = tempfile::tempdir().unwrap();
        let symbols = folder.path();
        let (first, size) = kept(symbols, "/srv/one/prog", "one");
        assert_eq!(size, 3);
        assert_eq!(kept(symbols, "/srv/two/prog", "one"), (first.clone(), 0));
        let (second, _) = kept(symbols, "/srv/one/prog", "two");
        assert_ne!(first, second);
        for (path, text) in [(first, "one"), (second, "two")] {
            assert!(path.ends_with("/prog"));
            let inside = path.strip_prefix("symbols/").unwrap();
            assert_eq!(std::fs::read_to_string(symbols.join(inside)).unwrap(), text);
        }
        assert!(!symbols.join(NEW).exists());
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let write = |out: &mut dyn Write| {
            out.write_all(b"half").map_err(Error::io("write", "x"))?;
            Err(Error::io("read", "x")(io::Error::other("gone")))
        };
        let symbols = folder.path();
        let refused: Result<_, Error> = keep(both(symbols), Path::new("/x"), write);
        assert!(refused.is_err());
        assert_eq!(std::fs::read_dir(symbols).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_cannot_be_moved_to_its_place_leaves_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (symbols, id) = (folder.path(), folder.path().join("0a"));
        assert!(place(&symbols.join(NEW), &id, "prog").is_err());
        assert_eq!(std::fs::read_dir(symbols).unwrap().count(), 0);
    }
}
