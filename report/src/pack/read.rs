//! Which files are in a pack? Nothing that it says is believed.
//!
//! Files of a session are written into a new folder, and nothing else: no links, no other names. A small pack fills neither memory nor the
//! disk.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;
use varid_recording::{SESSION_JSON, is_session_file};

use super::FOLDER;

/// Files of a pack.
const MAX_FILES: usize = 1 << 16;
/// Bytes that a pack may become, and as many for each of its own: records become ten times as large, tables of symbols five times.
const UNPACKED_AT_LEAST: u64 = 256 << 20;
const UNPACKED_RATIO: u64 = 100;

/// Why a pack cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// It has something else in it than a session.
    #[error("it holds {0:?}, which no session has")]
    Foreign(String),
    /// It has no manifest.
    #[error("it holds no session")]
    NoSession,
    /// It becomes larger than what is read.
    #[error("what is in it takes more than {0} bytes, or more than {MAX_FILES} files")]
    TooLarge(u64),
    /// It is damaged or cut.
    #[error("it is damaged: {0}")]
    Damaged(io::Error),
    /// The files cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// Whether a file that begins with these bytes may be a pack.
#[must_use]
pub const fn is_pack(start: &[u8]) -> bool {
    matches!(start, [0x1f, 0x8b, ..])
}

/// Writes the session of a pack of `size` bytes into a folder, which is created.
///
/// # Errors
///
/// It is no pack of a session, or the folder cannot be written: what is there of it stays.
pub fn unpack(pack: impl Read, size: u64, folder: &Path) -> Result<(), PackError> {
    let most = UNPACKED_AT_LEAST.saturating_add(size.saturating_mul(UNPACKED_RATIO));
    // The archive's own headers count, too.
    let bounded = GzDecoder::new(pack).take(most.saturating_add(1));
    let mut archive = tar::Archive::new(bounded);
    create(folder)?;
    let mut files = 0usize;
    let mut left = most;
    // As they are in the file: names in further entries, which may have any size, are not put together.
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

/// Writes a file of so many bytes, which was not there.
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

/// Creates a folder with those above it, for this user only.
fn create(folder: &Path) -> Result<(), PackError> {
    let mut builder = DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(folder);
    created.map_err(|source| PackError::Write {
        path: folder.to_owned(),
        source,
    })
}
