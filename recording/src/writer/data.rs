//! How does perf.data grow, so that neither a kill nor a full disk spoils it?
//!
//! It grows in whole records: a batch is appended first, then the header's data size is set to
//! include it, one aligned 8-byte write. A process killed between the two leaves bytes that no
//! reader looks at. Features are added at the end, their bits last; those that perf needs of a recording that is killed move on with the
//! end of the records.
//!
//! Room for the end is allocated ahead, behind the file's size: a disk that is full is known
//! while the session can still be completed.

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
    /// Tests put a full disk in its place.
    pub(super) file: File,
    /// Where the records start.
    data_at: u64,
    /// Bytes of records inside the header's data size.
    on_disk: u64,
    /// Where what is allocated ends.
    reserved: u64,
    /// Bytes of perf's features behind the records: the next batch overwrites them.
    features: usize,
    /// The header's bits of them.
    bits: [u8; FEATURE_BYTES],
    /// How large the file may become (RLIMIT_FSIZE); None: as large as there is room.
    pub(super) limit: Option<u64>,
}

/// Bytes behind the records that the features of a whole file may take, where it has a limit.
const FEATURES_ROOM: u64 = 16 << 10;

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
            features: 0,
            bits: [0; FEATURE_BYTES],
            limit: getrlimit(Resource::Fsize).current,
        })
    }

    /// How many bytes of records the file may still grow by, and be completed; None: it has no limit of its own.
    pub fn room(&self) -> Option<u64> {
        let used = self.end().saturating_add(FEATURES_ROOM);
        self.limit.map(|limit| limit.saturating_sub(used))
    }

    /// Where the records end: so many bytes are valid.
    pub const fn end(&self) -> u64 {
        self.data_at.saturating_add(self.on_disk)
    }

    /// Writes a batch behind the records, and features behind it until the next one, then makes the header include it; if so many bytes
    /// of `room` can be had behind them, too.
    pub fn append(&mut self, batch: &[u8], features: Vec<Section>, room: u64) -> io::Result<()> {
        let at = self.end();
        let on_disk = self.on_disk.saturating_add(batch.len() as u64);
        let end = self.data_at.saturating_add(on_disk);
        let (sections, bits) = features::laid_out(features, end);
        let used = end.saturating_add(sections.len() as u64);
        // A limit of the file is no disk that others fill meanwhile.
        let least = used.saturating_add(room.min(FEATURES_ROOM));
        if self.limit.is_some_and(|limit| least > limit) {
            return Err(Errno::FBIG.into());
        }
        self.reserve(used.saturating_add(room))?;
        // What the features before it lie in is written last: where a write fails, or ends with the process, they are still there.
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

    /// Writes perf's features behind the records, then the bits that say so; what is allocated
    /// behind them is free again.
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
