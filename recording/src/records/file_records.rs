//! The records of a session's file in either form.

use std::path::Path;

use varid_model::perf::Header;

use super::{Damage, RawRecord, compact::CompactRecords, plain::PlainRecords};
use crate::error::{Error, Result};

/// The records of perf.data or of records.data, as the file has them: those of perf.data may be compressed.
#[derive(Debug)]
pub enum FileRecords {
    PerfData(PlainRecords),
    Compact(Box<CompactRecords>),
}

impl FileRecords {
    /// Looks up how far the records reach now. A compact file does not grow.
    pub fn grow(&mut self) -> std::io::Result<()> {
        match self {
            Self::PerfData(records) => records.grow(),
            Self::Compact(_) => Ok(()),
        }
    }

    /// Ends the records.
    pub fn stop(&mut self) {
        match self {
            Self::PerfData(records) => records.stop(),
            Self::Compact(records) => records.stop(),
        }
    }

    /// Says that a round ends.
    pub fn end_round(&mut self) {
        match self {
            Self::PerfData(_) => {}
            Self::Compact(records) => records.unpacked.end_round(),
        }
    }

    /// Reads until the next record is in memory, if the file has all of it. Returns false if no record is left.
    pub fn read_ahead(&mut self, path: &Path) -> Result<bool> {
        match self {
            Self::PerfData(records) if records.has_more() => {
                let ahead = records.read_ahead();
                ahead.map(|()| true).map_err(Error::io("read", path))
            }
            Self::PerfData(_) => Ok(false),
            Self::Compact(records) => records.read_ahead(),
        }
    }

    /// Returns the next record, after [`read_ahead`](Self::read_ahead).
    pub fn first(&self) -> std::result::Result<RawRecord<'_>, Damage> {
        match self {
            Self::PerfData(records) => records.first(),
            Self::Compact(records) => records.unpacked.first(),
        }
    }

    /// Takes the next record.
    pub fn skip(&mut self, header: Header) {
        match self {
            Self::PerfData(records) => records.skip(header),
            Self::Compact(records) => records.unpacked.skip(header),
        }
    }
}
