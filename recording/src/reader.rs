//! Reads a session, whether it is live, was killed or is complete.

use std::path::{Path, PathBuf};

use crate::{
    PERF_DATA, SESSION_JSON, SYMBOLS,
    compact::RECORDS_DATA,
    compiled_code::RecordedCodes,
    contexts::{self, ContextTrace, Contexts},
    error::{Error, Result},
    manifest::Manifest,
    records::Records,
};

/// A session folder, opened for reading. Its content is not trusted.
#[derive(Debug)]
pub struct SessionReader {
    dir: PathBuf,
    manifest: Manifest,
}

impl SessionReader {
    /// Opens a session folder.
    ///
    /// # Errors
    ///
    /// The folder is not a session, or its manifest cannot be read.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let path = dir.join(SESSION_JSON);
        if matches!(path.try_exists(), Ok(false)) {
            return Err(Error::NoSession { path: dir });
        }
        let manifest = Manifest::read(&path)?;
        Ok(Self { dir, manifest })
    }

    /// Returns the session folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the folder of substitute ELF files.
    #[must_use]
    pub fn symbols(&self) -> PathBuf {
        self.dir.join(SYMBOLS)
    }

    /// Returns the manifest as it was when the session was opened. A killed session has the counts of the last save; the records are exact.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the calling contexts in which something was counted, as far as the file has them: see [`Contexts::damage`]. Those of a
    /// session from before contexts.data are methods without callers, with the counters `calls`, `returns` and `unwinds`. None: nothing was
    /// counted.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, is another one, or one of another version.
    pub fn contexts(&self) -> Result<Option<Contexts>> {
        contexts::read(&self.dir)
    }

    /// Reads the bytes of a part of a trace of this session, as they were written.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read_trace(&self, trace: &ContextTrace) -> Result<Vec<u8>> {
        contexts::read_trace(&self.dir, trace)
    }

    /// Returns the code that VMs have compiled, as far as it was sampled and the file has it: see [`RecordedCodes::damage`]. None: there is
    /// none.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, is another one, or one of another version.
    pub fn compiled_code(&self) -> Result<Option<RecordedCodes>> {
        RecordedCodes::read(&self.dir)
    }

    /// Returns false if the session has no records. It may have [`contexts`](Self::contexts).
    #[must_use]
    pub fn has_records(&self) -> bool {
        self.has(PERF_DATA) || self.has(RECORDS_DATA)
    }

    fn has(&self, file: &str) -> bool {
        !matches!(self.dir.join(file).try_exists(), Ok(false))
    }

    /// Returns the records that the file holds now, in order of time.
    ///
    /// # Errors
    ///
    /// Their file cannot be opened, or its head is not one that varid writes.
    pub fn records(&self) -> Result<Records> {
        let events = &self.manifest.events;
        match self.has_compact_records() {
            true => Records::open_compact(self.dir.join(RECORDS_DATA), events),
            false => Records::open(self.dir.join(PERF_DATA), events),
        }
    }

    /// Returns true if the records are in their compact form. Until that is complete, perf.data is there, and has them.
    pub(crate) fn has_compact_records(&self) -> bool {
        !self.has(PERF_DATA) && self.has(RECORDS_DATA)
    }
}
