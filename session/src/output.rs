//! Writes the recording, and handles errors of the storage.

use super::SessionError;
use super::notes::Notes;
use super::raw::RawFile;
use super::recorder::{Recorder, RecorderError};
use std::path::PathBuf;
use varid_recording::{RAW_DATA, SessionRecord};

/// The last note if there are more processes with missing methods than notes are written.
const FURTHER: &str = "further processes, or their methods, are not seen either";

/// The recording, and the kernel's own samples beside it.
#[derive(Debug)]
pub struct Output {
    /// Writes the recording.
    pub recorder: Recorder,
    raw: Option<RawFile>,
    folder: PathBuf,
    /// True if the storage was full, which has ended the session.
    full: bool,
    /// True if the last write failed for another reason, which has been logged.
    failing: bool,
    /// The reasons for missing methods of processes.
    unseen: Notes,
}

impl Output {
    /// Makes the output of a session in a folder. `raw`: the file of the kernel's own samples.
    pub fn new(recorder: Recorder, raw: Option<RawFile>, folder: PathBuf) -> Self {
        Self {
            recorder,
            raw,
            folder,
            full: false,
            failing: false,
            unseen: Notes::default(),
        }
    }

    /// The session's folder.
    pub fn into_folder(self) -> PathBuf {
        self.folder
    }

    /// Writes a record other than a sample.
    pub fn write(&mut self, record: &SessionRecord) -> Result<(), SessionError> {
        let written = self.recorder.write(record);
        self.tolerate(written)
    }

    /// Writes one of the kernel's own samples, if they are kept.
    pub fn write_raw(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        self.with_raw(|raw| raw.push(bytes))
    }

    /// Writes the kernel's own samples to the disk.
    pub fn flush_raw(&mut self) -> Result<(), SessionError> {
        self.with_raw(RawFile::flush)
    }

    fn with_raw(
        &mut self,
        run: impl FnOnce(&mut RawFile) -> std::io::Result<()>,
    ) -> Result<(), SessionError> {
        self.raw
            .as_mut()
            .map_or(Ok(()), run)
            .map_err(|source| SessionError::Raw {
                path: self.folder.join(RAW_DATA),
                source,
            })
    }

    /// Handles the result of a flush. On success, an earlier error is over.
    pub fn flushed(&mut self, flushed: Result<(), RecorderError>) -> Result<(), SessionError> {
        if flushed.is_ok() && std::mem::take(&mut self.failing) {
            tracing::info!("the recording can be written again");
        }
        self.tolerate(flushed)
    }

    /// Handles the result of a write. A full disk ends the session while there is space to complete the recording. Other errors do
    /// not: what was written stays readable, and further records are buffered up to a limit and written at a later flush. Records
    /// beyond the limit are counted as lost.
    pub fn tolerate(&mut self, written: Result<(), RecorderError>) -> Result<(), SessionError> {
        let Err(error) = written else {
            return Ok(());
        };
        if error.is_full() {
            // The first of these errors ends the session. The end of the recording is then written as far as space permits.
            if std::mem::replace(&mut self.full, true) {
                return Ok(());
            }
            return Err(SessionError::Full {
                folder: self.folder.clone(),
            });
        }
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(
                "{error}; recording goes on, and is written when that is possible again"
            );
        }
        Ok(())
    }

    /// Adds a note to the recording and logs it, unless the recording has it already.
    pub fn note(&mut self, note: String) {
        if !self.recorder.writer().manifest_mut().notes.contains(&note) {
            tracing::warn!("{note}");
            self.recorder.changed_manifest().notes.push(note);
        }
    }

    /// Adds notes about missing methods of processes, up to a limit.
    pub fn note_unseen(&mut self, reasons: impl IntoIterator<Item = String>) {
        for reason in reasons {
            self.unseen.add(reason, FURTHER);
        }
        let notes = self.unseen.take();
        if !notes.is_empty() {
            self.recorder.changed_manifest().notes.extend(notes);
        }
    }
}
