//! Opens files that somebody else may have replaced by anything, provided that they are regular files.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

use crate::error::{Error, Result};

/// Opens a regular file for reading. Opening anything else may have effects: a pipe would wait for a writer, a device may do something,
/// and a terminal may become the process's own.
///
/// # Errors
///
/// The file cannot be opened, or is not a regular one.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let regular = |found: &Metadata| match found.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        )),
    };
    regular(&fs::metadata(path)?)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
        .open(path)?;
    // The path may lead to another file since the check.
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file of a session. None if the session has no such file.
///
/// # Errors
///
/// It cannot be opened, or is not a regular file.
pub(crate) fn open_if_there(path: &Path) -> Result<Option<File>> {
    match open_regular(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("open", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_fifo(path: &Path) {
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    }

    #[test]
    fn only_regular_files_are_opened_and_nobody_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        make_fifo(&fifo);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        for path in [&fifo, &link, dir.path(), Path::new("/dev/null")] {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
        let file = dir.path().join("file");
        let missing = open_regular(&file).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        fs::write(&file, "x").unwrap();
        assert_eq!(
            io::read_to_string(open_regular(&file).unwrap()).unwrap(),
            "x"
        );
    }
}
