//! Writes the counts of VMs into the session's contexts.data, including those of processes that have ended.

use super::counting::{Counting, counters};
use crate::recorder::{Recorder, RecorderError};
use std::collections::{HashMap, VecDeque};
use varid_model::Pid;
use varid_recording::ContextWriter;

/// The session's contexts.data. It is created when counts are first read.
#[derive(Debug, Default)]
pub struct CallContexts {
    writer: Option<ContextWriter>,
    /// Processes that have ended or executed another program, and whose last counts are not written yet.
    ended: VecDeque<(Pid, Counting)>,
}

impl CallContexts {
    /// Handles the exit or exec of a process. Its counts are written next.
    pub fn end(&mut self, pid: Pid, counting: Counting) {
        self.ended.push_back((pid, counting));
    }

    /// Adds the new methods of all processes. Ended processes come first because another program may count in the same
    /// process.
    pub fn add_methods(
        &mut self,
        vms: &mut HashMap<Pid, Counting>,
        recorder: &mut Recorder,
    ) -> Result<(), RecorderError> {
        let contexts = match &mut self.writer {
            Some(contexts) => contexts,
            none => none.insert(recorder.writer().create_contexts(&counters())?),
        };
        while let Some((pid, counting)) = self.ended.front_mut() {
            counting.end(*pid, contexts)?;
            self.ended.pop_front();
        }
        for (pid, counting) in vms {
            counting.add_methods(*pid, contexts)?;
        }
        Ok(())
    }

    /// Writes changed counts and new methods. The `last` call completes the file.
    pub fn write(
        &mut self,
        vms: &mut HashMap<Pid, Counting>,
        recorder: &mut Recorder,
        last: bool,
    ) -> Result<(), RecorderError> {
        self.add_methods(vms, recorder)?;
        let Some(mut contexts) = self.writer.take() else {
            return Ok(());
        };
        let mut counts = vms.values_mut();
        let written = counts.try_for_each(|counting| counting.write_counts(&mut contexts));
        if last {
            written?;
            return Ok(contexts.finish()?);
        }
        let flushed = contexts.flush();
        self.writer = Some(contexts);
        written?;
        Ok(flushed?)
    }
}
