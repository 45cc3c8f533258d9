//! Appends chunks to a file so that neither a kill nor a full disk damages its contents.

use std::{fs::File, io, os::unix::fs::FileExt, path::PathBuf};

use crate::error::{Error, Result};

/// The number of waiting bytes that causes a write without a flush.
const BATCH: usize = 256 << 10;

/// The maximum number of bytes that wait while the disk cannot be written.
const MAX_BACKLOG: usize = 16 << 20;

/// The file, and the chunks that are not written yet.
#[derive(Debug)]
pub struct ChunkFile {
    pub path: PathBuf,
    /// The file. Tests replace it by a full disk.
    pub file: File,
    /// The number of bytes that have been written.
    end: u64,
    /// Complete chunks that are not in the file yet.
    pub waiting: Vec<u8>,
    /// The number of waiting bytes at which the next write is tried.
    write_at: usize,
}

impl ChunkFile {
    /// Makes an empty file. `head` is written first.
    pub const fn new(path: PathBuf, file: File, head: Vec<u8>) -> Self {
        Self {
            path,
            file,
            end: 0,
            waiting: head,
            write_at: BATCH,
        }
    }

    /// Writes the waiting chunks if there are many. A failure is an error only if no more chunks can wait.
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

    /// Writes the waiting chunks. If that fails, they continue to wait.
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
            // A partial chunk would look like damage, so it is removed.
            Err(_) => drop(self.file.set_len(self.end)),
        }
        written
    }
}
