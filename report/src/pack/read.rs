//! Reads a pack, which is not trusted.
//!
//! Only files of a session are written, into a new folder: no links and no other names. The size is limited, so that a
//! small pack cannot fill memory or disk.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;
use varid_recording::{SESSION_JSON, is_session_file};

use super::FOLDER;

/// The most files in a pack.
const MAX_FILES: usize = 1 << 16;
/// The unpacked size is limited to this plus [`UNPACKED_RATIO`] bytes for each byte of the pack. Records become ten times
/// as large, symbol tables five times.
const UNPACKED_AT_LEAST: u64 = 256 << 20;
const UNPACKED_RATIO: u64 = 100;

/// The reason why a pack cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// It contains a file that is not part of a session.
    #[error("it holds {0:?}, which no session has")]
    Foreign(String),
    /// It has no manifest.
    #[error("it holds no session")]
    NoSession,
    /// It exceeds the limits of size or number of files.
    #[error("what is in it takes more than {0} bytes, or more than {MAX_FILES} files")]
    TooLarge(u64),
    /// It is damaged or truncated.
    #[error("it is damaged: {0}")]
    Damaged(io::Error),
    /// The files cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Returns true if a file that starts with these bytes may be a pack.
#[must_use]
pub const fn is_pack(start: &[u8]) -> bool {
    matches!(start, [0x1f, 0x8b, ..])
}

/// Unpacks the session of a pack of `size` bytes into a new folder.
///
/// # Errors
///
/// It is not a pack of a session, or the folder cannot be written. Files that were already written stay there.
pub fn unpack(pack: impl Read, size: u64, folder: &Path) -> Result<(), PackError> {
    let most = UNPACKED_AT_LEAST.saturating_add(size.saturating_mul(UNPACKED_RATIO));
    // The limit includes the headers of the archive.
    let bounded = GzDecoder::new(pack).take(most.saturating_add(1));
    let mut archive = tar::Archive::new(bounded);
    create(folder)?;
    let mut files = 0usize;
    let mut left = most;
    // Raw entries: long names in extra entries, which may have any size, are not assembled.
    let entries = archive.entries().map_err(PackError::Damaged)?.raw(true);
    for entry in entries {
        let entry = entry.map_err(PackError::Damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        let inside = name
            .strip_prefix(FOLDER)
            .and_then(|name| name.strip_prefix('/'));
        if kind.is_dir() {
            continue;
        }
        let inside = inside.filter(|path| kind.is_file() && is_session_file(path));
        let inside = inside.ok_or_else(|| PackError::Foreign(name.clone()))?;
        files = files.saturating_add(1);
        let size = entry.size();
        left = left.checked_sub(size).ok_or(PackError::TooLarge(most))?;
        if files > MAX_FILES {
            return Err(PackError::TooLarge(most));
        }
        write(&folder.join(inside), entry, size)?;
    }
    match folder.join(SESSION_JSON).is_file() {
        true => Ok(()),
        false => Err(PackError::NoSession),
    }
}

/// Writes a new file of this size.
fn write(path: &Path, content: impl Read, size: u64) -> Result<(), PackError> {
    if let Some(folder) = path.parent() {
        create(folder)?;
    }
    let failed = |source| PackError::Write {
        path: path.to_owned(),
        source,
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    let mut content = content.take(size);
    let mut piece = vec![0; 1 << 16];
    let mut written = 0u64;
    loop {
        let read = content.read(&mut piece).map_err(PackError::Damaged)?;
        if read == 0 {
            break;
        }
        file.write_all(piece.get(..read).unwrap_or_default())
            .map_err(failed)?;
        written = written.saturating_add(read as u64);
    }
    match written == size {
        true => Ok(()),
        false => Err(PackError::Damaged(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Creates a folder and its parents, accessible to this user only.
fn create(folder: &Path) -> Result<(), PackError> {
    let mut builder = DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(folder);
    created.map_err(|source| PackError::Write {
        path: folder.to_owned(),
        source,
    })
}
