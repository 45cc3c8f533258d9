//! Appends to perf.data so that neither a kill nor a full disk spoils it.
//!
//! The file grows by whole records: a batch is appended first, then the header's data size is set to include it, in one aligned 8-byte
//! write. A process that is killed between the two leaves bytes that no reader looks at. Features are added at the end, their bits last.
//! The features that perf needs to read a killed recording move along with the end of the records.
//!
//! Room for the end is allocated ahead, beyond the file's size, so that a full disk is noticed while the session can still be completed.

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
    process::{Resource, getrlimit},
};

use super::folder::{Folder, PERF_DATA_NEW};
use crate::{
    PERF_DATA, encode,
    error::{Error, Result},
    event::SessionEvents,
    features::{self, Section},
    format::{DATA_SIZE_AT, FEATURE_BYTES, FEATURES_AT, data_at, session_head},
};

/// perf.data, readable up to the last batch.
#[derive(Debug)]
pub struct DataFile {
    /// The file. Tests put a full disk in its place.
    pub(super) file: File,
    /// The offset at which the records start.
    data_at: u64,
    /// The bytes of records that the header's data size includes.
    on_disk: u64,
    /// The offset at which the allocated part ends.
    reserved: u64,
    /// The bytes of perf's features after the records. The next batch overwrites them.
    features: usize,
    /// The header's bits for these features.
    bits: [u8; FEATURE_BYTES],
    /// The largest size of the file in bytes (RLIMIT_FSIZE). `None` if only the disk limits it.
    pub(super) limit: Option<u64>,
}

/// The bytes after the records that the features of a complete file may take, where the file has a limit.
const FEATURES_ROOM: u64 = 16 << 10;

impl DataFile {
    /// Creates the file with a header and no record. It appears by rename, so that a kill leaves either no file or a whole one.
    pub fn create(folder: &Folder, events: &SessionEvents) -> Result<Self> {
        let file = folder.create_new(PERF_DATA_NEW)?;
        let mut bytes = session_head(events);
        // perf refuses a file whose data size is zero, so the file starts with an empty round.
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
            features: 0,
            bits: [0; FEATURE_BYTES],
            limit: getrlimit(Resource::Fsize).current,
        })
    }

    /// Returns how many bytes of records still fit, so that the file can be completed. `None` if it has no limit of its own.
    pub fn room(&self) -> Option<u64> {
        let used = self.end().saturating_add(FEATURES_ROOM);
        self.limit.map(|limit| limit.saturating_sub(used))
    }

    /// Returns the offset at which the records end. The file is valid up to there.
    pub const fn end(&self) -> u64 {
        self.data_at.saturating_add(self.on_disk)
    }

    /// Writes a batch after the records, and after it the features, which stay until the next batch. Then makes the header include the
    /// batch. Fails if `room` further bytes cannot be allocated after them.
    pub fn append(&mut self, batch: &[u8], features: Vec<Section>, room: u64) -> io::Result<()> {
        let at = self.end();
        let on_disk = self.on_disk.saturating_add(batch.len() as u64);
        let end = self.data_at.saturating_add(on_disk);
        let (sections, bits) = features::laid_out(features, end);
        let used = end.saturating_add(sections.len() as u64);
        // A limit of the file is unlike a disk, which others fill meanwhile.
        let least = used.saturating_add(room.min(FEATURES_ROOM));
        if self.limit.is_some_and(|limit| least > limit) {
            return Err(Errno::FBIG.into());
        }
        self.reserve(used.saturating_add(room))?;
        // The part that overwrites the old features is written last: if a write fails, or the process ends, they are still there.
        let (first, others) = batch.split_at(self.features.min(batch.len()));
        self.file.write_all_at(&sections, end)?;
        let others_at = at.saturating_add(first.len() as u64);
        self.file.write_all_at(others, others_at)?;
        self.file.write_all_at(first, at)?;
        self.file
            .write_all_at(&on_disk.to_le_bytes(), DATA_SIZE_AT)?;
        self.on_disk = on_disk;
        self.features = sections.len();
        if bits != self.bits {
            self.file.write_all_at(&bits, FEATURES_AT)?;
            self.bits = bits;
        }
        Ok(())
    }

    /// Writes perf's features after the records, then their bits in the header. Frees what is allocated after them.
    pub fn complete(&mut self, features: Vec<Section>) -> io::Result<()> {
        let at = self.end();
        let (sections, bits) = features::laid_out(features, at);
        self.file.write_all_at(&sections, at)?;
        self.file.write_all_at(&bits, FEATURES_AT)?;
        self.file
            .set_len(at.saturating_add(sections.len() as u64))?;
        self.reserved = 0;
        self.features = sections.len();
        self.bits = bits;
        Ok(())
    }

    /// Allocates the file up to `end`, beyond its size. Some file systems cannot do this.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    #[test]
    fn a_batch_that_cannot_be_written_leaves_the_features_of_the_one_before() {
        let new = || {
            let memory = memfd_create("perf.data", MemfdFlags::ALLOW_SEALING).unwrap();
            DataFile {
                file: File::from(memory),
                data_at: 104,
                on_disk: 0,
                reserved: 0,
                features: 0,
                bits: [0; FEATURE_BYTES],
                limit: None,
            }
        };
        let content = |data: &DataFile| {
            let mut bytes = vec![0; data.file.metadata().unwrap().len() as usize];
            data.file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let features = || vec![features::compression()];
        let (first, second) = ([1; 1000], [2; 3000]);
        let mut data = new();
        data.append(&first, features(), 0).unwrap();
        let before = content(&data);
        assert_eq!(before[FEATURES_AT as usize..104], data.bits);
        // There is no room for a whole batch.
        data.file.set_len(before.len() as u64 + 100).unwrap();
        fcntl_add_seals(&data.file, SealFlags::GROW).unwrap();
        data.append(&second, features(), 0).unwrap_err();
        assert_eq!(content(&data)[..before.len()], before);
        assert_eq!(data.end(), 1104);
        // Where there is, the file is what one batch would have made it.
        let mut data = new();
        data.append(&first, features(), 0).unwrap();
        data.append(&second, features(), 0).unwrap();
        let mut at_once = new();
        at_once
            .append(&[&first[..], &second].concat(), features(), 0)
            .unwrap();
        assert_eq!(content(&data), content(&at_once));
    }
}
