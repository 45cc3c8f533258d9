//! Appends records to the file that says what is counted.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
};

use crate::record::Record;

/// The file.
#[derive(Debug)]
pub(crate) struct Tables(File);

impl Tables {
    /// Makes the file.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        Ok(Self(options.append(true).create_new(true).open(path)?))
    }

    /// Appends a record. The system keeps what is written, even if this process is killed.
    pub(crate) fn append(&self, record: &Record<'_>) -> io::Result<()> {
        self.append_encoded(&record.encode())
    }

    /// Appends the bytes of records.
    pub(crate) fn append_encoded(&self, records: &[u8]) -> io::Result<()> {
        // Threads append at the same time: a record is one write in almost all cases, and a rest of it is an error for the reader.
        (&self.0).write_all(records)
    }
}
