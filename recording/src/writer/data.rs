//! How does perf.data grow, so that neither a kill nor a full disk spoils it?
//!
//! It grows in whole records: a batch is appended first, then the header's data size is set to
//! include it, one aligned 8-byte write. A process killed between the two leaves bytes that no
//! reader looks at. Features are added at the end, their bits last.
//!
//! Room for the end is allocated ahead, behind the file's size: a disk that is full is known
//! while the session can still be completed.

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

use super::folder::{Folder, PERF_DATA_NEW};
use crate::{
    PERF_DATA, encode,
    error::{Error, Result},
    event::SessionEvents,
    format::{DATA_SIZE_AT, FEATURE_BYTES, FEATURES_AT, data_at, session_head},
};

/// perf.data, readable up to the last batch.
#[derive(Debug)]
pub struct DataFile {
    /// Tests put a full disk in its place.
    pub(super) file: File,
    /// Where the records start.
    data_at: u64,
    /// Bytes of records inside the header's data size.
    on_disk: u64,
    /// Where what is allocated ends.
    reserved: u64,
    /// perf's features lie behind the records: the next batch overwrites them.
    has_features: bool,
}

impl DataFile {
    /// Creates it, with a header and no record; by rename, so that a kill leaves either none or a whole one.
    pub fn create(folder: &Folder, events: &SessionEvents) -> Result<Self> {
        let file = folder.create_new(PERF_DATA_NEW)?;
        let mut bytes = session_head(events);
        // perf refuses a file whose data size is zero, so it never is: an empty round.
        encode::finished_round(&mut bytes);
        let data_at = data_at(events.len());
        let on_disk = (bytes.len() as u64).saturating_sub(data_at);
        file.write_all_at(&bytes, 0)
            .and_then(|()| file.write_all_at(&on_disk.to_le_bytes(), DATA_SIZE_AT))
            .map_err(Error::io("write", folder.path.join(PERF_DATA_NEW)))?;
        folder.rename(PERF_DATA_NEW, PERF_DATA)?;
        Ok(Self {
            file,
            data_at,
            on_disk,
            reserved: 0,
            has_features: false,
        })
    }

    /// Where the records end: so many bytes are valid.
    pub const fn end(&self) -> u64 {
        self.data_at.saturating_add(self.on_disk)
    }

    /// Writes a batch behind the records, then makes the header include it; if so many bytes of
    /// `room` can be had behind it, too.
    pub fn append(&mut self, batch: &[u8], room: u64) -> io::Result<()> {
        let at = self.end();
        let on_disk = self.on_disk.saturating_add(batch.len() as u64);
        self.reserve(self.data_at.saturating_add(on_disk).saturating_add(room))?;
        if self.has_features {
            self.file.write_all_at(&[0; FEATURE_BYTES], FEATURES_AT)?;
            self.has_features = false;
        }
        self.file.write_all_at(batch, at)?;
        self.file
            .write_all_at(&on_disk.to_le_bytes(), DATA_SIZE_AT)?;
        self.on_disk = on_disk;
        Ok(())
    }

    /// Writes features that perf needs before the recording is complete, until the next batch.
    pub fn mark(&mut self, sections: &[u8], bits: &[u8]) -> io::Result<()> {
        self.file.write_all_at(sections, self.end())?;
        self.file.write_all_at(bits, FEATURES_AT)?;
        self.has_features = true;
        Ok(())
    }

    /// Writes perf's features behind the records, then the bits that say so; what is allocated
    /// behind them is free again.
    pub fn complete(&mut self, sections: &[u8], bits: &[u8]) -> io::Result<()> {
        let at = self.end();
        self.file.write_all_at(sections, at)?;
        self.file.write_all_at(bits, FEATURES_AT)?;
        self.file
            .set_len(at.saturating_add(sections.len() as u64))?;
        self.reserved = 0;
        self.has_features = true;
        Ok(())
    }

    /// Allocates the file up to there, behind its size. Not every file system can.
    fn reserve(&mut self, end: u64) -> io::Result<()> {
        let Some(missing) = end
            .checked_sub(self.reserved)
            .filter(|missing| *missing > 0)
        else {
            return Ok(());
        };
        match fallocate(
            &self.file,
            FallocateFlags::KEEP_SIZE,
            self.reserved,
            missing,
        ) {
            Err(full @ (Errno::NOSPC | Errno::DQUOT)) => Err(full.into()),
            Err(_) => Ok(()),
            Ok(()) => {
                self.reserved = end;
                Ok(())
            }
        }
    }
}
