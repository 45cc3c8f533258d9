//! Appends to contexts.data so that neither a kill nor a full disk spoils what is there.

use std::{fs::File, io, os::unix::fs::FileExt, path::PathBuf};

use crate::error::{Error, Result};

/// The bytes that wait at which they are written without a flush.
const BATCH: usize = 256 << 10;

/// The most bytes that wait for a disk that cannot take them.
const MAX_BACKLOG: usize = 16 << 20;

/// The file, and the chunks that wait for it.
#[derive(Debug)]
pub struct ChunkFile {
    pub path: PathBuf,
    /// The file. Tests put a full disk in its place.
    pub(super) file: File,
    /// The size of what has been written.
    end: u64,
    /// Whole chunks that are not in the file yet.
    pub waiting: Vec<u8>,
    /// The bytes that wait at which writing is tried again.
    write_at: usize,
}

impl ChunkFile {
    /// The file, which is empty, and what comes first in it.
    pub const fn new(path: PathBuf, file: File, head: Vec<u8>) -> Self {
        Self {
            path,
            file,
            end: 0,
            waiting: head,
            write_at: BATCH,
        }
    }

    /// Writes what waits, if it is much. A failure is an error only if nothing more can wait.
    pub fn make_room(&mut self) -> Result<()> {
        if self.waiting.len() < self.write_at {
            return Ok(());
        }
        let written = self.write();
        match self.waiting.len() >= MAX_BACKLOG {
            true => written,
            false => Ok(()),
        }
    }

    /// Writes what waits. If that fails, it goes on waiting.
    pub fn write(&mut self) -> Result<()> {
        if let Err(source) = self.append() {
            let pending = self.waiting.len();
            self.write_at = pending.saturating_add(BATCH).min(MAX_BACKLOG);
            let path = self.path.clone();
            return Err(Error::Append {
                path,
                pending,
                source,
            });
        }
        self.waiting.clear();
        self.waiting.shrink_to(BATCH.saturating_mul(2));
        self.write_at = BATCH;
        Ok(())
    }

    fn append(&mut self) -> io::Result<()> {
        let written = self.file.write_all_at(&self.waiting, self.end);
        match written {
            Ok(()) => self.end = self.end.saturating_add(self.waiting.len() as u64),
            // A part of a chunk would be taken for damage. Without it, the file is what it was.
            Err(_) => drop(self.file.set_len(self.end)),
        }
        written
    }
}
