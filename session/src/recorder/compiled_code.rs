//! Keeps the instructions of compiled code in which leaves were sampled.

use super::{Recorder, RecorderError};
use varid_model::Pid;
use varid_recording::{RecordedCode, RecordedCodeWriter};
use varid_vm::seam::ExecutedCode;

/// Note on a session with more code than is kept.
const FULL: &str = "more code was compiled and sampled than a session keeps: 'varid annotate' shows the instructions of the first 32 MB";

impl Recorder {
    /// Keeps code of a process. The file of compiled code is created with the first.
    pub fn keep_compiled_code(
        &mut self,
        pid: Pid,
        sampled: Vec<ExecutedCode>,
    ) -> Result<(), RecorderError> {
        for code in sampled {
            let ExecutedCode {
                since,
                start,
                machine,
                name,
                bytes,
            } = code;
            let is_kept = self.compiled_code()?.add(&RecordedCode {
                pid,
                since,
                start,
                machine,
                name,
                bytes,
            })?;
            let notes = &self.writer.manifest_mut().notes;
            if !is_kept && !notes.iter().any(|note| note == FULL) {
                self.changed_manifest().notes.push(FULL.to_owned());
            }
        }
        Ok(())
    }

    fn compiled_code(&mut self) -> Result<&mut RecordedCodeWriter, RecorderError> {
        let writer = match self.compiled_code.take() {
            Some(writer) => writer,
            None => self.writer.create_compiled_code()?,
        };
        Ok(self.compiled_code.insert(writer))
    }

    /// Writes the code that waits, before the samples in it.
    pub(super) fn flush_compiled_code(&mut self) -> Result<(), RecorderError> {
        let writer = self.compiled_code.as_mut();
        Ok(writer.map_or(Ok(()), RecordedCodeWriter::flush)?)
    }
}
