//! Records that were decompressed, and wait to be taken.

use varid_model::perf::Header;

use super::{Damage, RawRecord};
use crate::{
    format::RECORD_HEADER_SIZE,
    plain_records::CUT,
    writer::{BATCH, MAX_BACKLOG},
};

/// The records of the last part of a file that was decompressed.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The file offset of that part.
    at: u64,
    records: Vec<u8>,
    /// The bytes of these records that have been taken.
    taken: usize,
    /// The bytes since the last end of a round.
    in_round: usize,
}

/// The most bytes of decompressed records in a round: the writer's backlog and a batch.
pub const MAX_ROUND: usize = MAX_BACKLOG
    .saturating_mul(2)
    .saturating_add(BATCH.saturating_mul(2));

impl Unpacked {
    /// Replaces the records, which were all taken, by those of the part at a file offset. `unpack` writes them.
    pub fn replace(
        &mut self,
        at: u64,
        unpack: impl FnOnce(&mut Vec<u8>) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        (self.at, self.taken) = (at, 0);
        unpack(&mut self.records)?;
        // Records wait in memory for the end of a round. They must be few, whatever a small file says.
        self.in_round = self.in_round.saturating_add(self.records.len());
        match self.in_round > MAX_ROUND {
            true => Err("more compressed records than a round has"),
            false => Ok(()),
        }
    }

    /// Says that a round ends.
    pub const fn end_round(&mut self) {
        self.in_round = 0;
    }

    /// Returns true if a record is left.
    pub const fn has_more(&self) -> bool {
        self.taken < self.records.len()
    }

    /// Returns the next record.
    pub fn first(&self) -> Result<RawRecord<'_>, Damage> {
        let cut = Damage {
            at: self.at,
            reason: CUT,
        };
        let rest = self.records.get(self.taken..).unwrap_or_default();
        let header = Header::from_bytes(*rest.first_chunk().ok_or(cut)?);
        let body = rest.get(RECORD_HEADER_SIZE..usize::from(header.size));
        Ok((self.at, header, body.ok_or(cut)?))
    }

    /// Takes the next record.
    pub fn skip(&mut self, header: Header) {
        self.taken = self.taken.saturating_add(usize::from(header.size));
    }
}
