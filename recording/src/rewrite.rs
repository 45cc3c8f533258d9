//! Changes the form of the records of a session that is no longer being recorded.
//!
//! The new file replaces the old one when it is whole, so that a kill leaves the old one.

mod compact;
mod perf_data;

use std::{
    fs::{File, Metadata},
    os::unix::fs::{MetadataExt, fchown},
    path::Path,
};

use crate::{
    PERF_DATA, RECORDS_DATA, SessionReader,
    compression::RecordCompressor,
    error::{Error, Result},
    features::Section,
    writer::folder::{Folder, PERF_DATA_NEW, RECORDS_DATA_NEW},
};

use compact::{CompactSource, CompactTarget};
use perf_data::{PerfDataSource, PerfDataTarget};

/// The form of a session's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordsForm {
    /// perf.data, which any of perf's readers takes.
    Plain,
    /// perf.data with compressed records, which perf 5.2 and later reads.
    Compressed,
    /// records.data, which only varid reads.
    Compact,
}

/// The sizes of the file of records, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewritten {
    /// The size before.
    pub before: u64,
    /// The size now.
    pub after: u64,
}

/// A file of records that is read.
trait Source {
    /// Returns the bytes of a perf.data before its records.
    fn head(&mut self) -> Result<Vec<u8>>;
    /// Gives each record to a target, decompressed.
    fn records(&mut self, target: &mut dyn Target) -> Result<()>;
    /// Returns the features of a perf.data with this head, but for the one of compression. The records were read.
    fn features(&mut self, head: &[u8]) -> Result<Vec<Section>>;
}

/// A file of records that is written.
trait Target {
    fn head(&mut self, head: &[u8]) -> Result<()>;
    fn record(&mut self, record: &[u8]) -> Result<()>;
    fn finish(self: Box<Self>, features: Vec<Section>) -> Result<File>;
}

/// Gives the records of a session that is not being recorded another form.
///
/// # Errors
///
/// The session is being recorded, is damaged, cannot have that form, or cannot be written. It then stays as it was.
pub fn rewrite(dir: &Path, form: RecordsForm) -> Result<Rewritten> {
    let session = SessionReader::open(dir)?;
    let folder = Folder::take_existing(dir)?;
    let old_name = match session.has_compact_records() {
        true => RECORDS_DATA,
        false => PERF_DATA,
    };
    let (name, new_name) = match form {
        RecordsForm::Plain | RecordsForm::Compressed => (PERF_DATA, PERF_DATA_NEW),
        RecordsForm::Compact => (RECORDS_DATA, RECORDS_DATA_NEW),
    };
    let path = dir.join(old_name);
    let mut source: Box<dyn Source> = match old_name == RECORDS_DATA {
        true => Box::new(CompactSource::open(&path, session.manifest().events.len())?),
        false => Box::new(PerfDataSource::open(path.clone(), &session)?),
    };
    let old = path.metadata().map_err(Error::io("read", path))?;
    folder.remove(new_name)?;
    let file = folder.create_new(new_name)?;
    let path = dir.join(new_name);
    let target: Box<dyn Target> = match form {
        RecordsForm::Plain => Box::new(PerfDataTarget::new(path.clone(), file, None)),
        RecordsForm::Compressed => {
            let compressor = Some(RecordCompressor::new());
            Box::new(PerfDataTarget::new(path.clone(), file, compressor))
        }
        RecordsForm::Compact => Box::new(CompactTarget::new(path.clone(), file)),
    };
    let written = copy(source.as_mut(), target).and_then(|file| complete(&file, &old, &path));
    match written {
        Ok(after) => {
            folder.rename(new_name, name)?;
            if old_name != name {
                folder.remove(old_name)?;
            }
            let before = old.len();
            Ok(Rewritten { before, after })
        }
        Err(error) => {
            folder.remove(new_name)?;
            Err(error)
        }
    }
}

fn copy(source: &mut dyn Source, mut target: Box<dyn Target>) -> Result<File> {
    let head = source.head()?;
    target.head(&head)?;
    source.records(target.as_mut())?;
    let features = source.features(&head)?;
    target.finish(features)
}

/// Gives a new file the owner of the old one, and returns its size when it is on the disk.
fn complete(file: &File, old: &Metadata, path: &Path) -> Result<u64> {
    let complete = || {
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            fchown(file, Some(old.uid()), Some(old.gid()))?;
        }
        file.sync_all()?;
        Ok(new.len())
    };
    complete().map_err(Error::io("write", path))
}
