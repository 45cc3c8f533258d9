//! How is a session written to the disk, and what happens when that fails?

use super::recorder::RecorderError;
use super::{Session, SessionError};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use varid_model::MonotonicNs;
use varid_process::clock;
use varid_process::{Turn, reader};
use varid_recording::{RAW_DATA, SessionRecord};
use varid_sampler::monotonic_ns;

/// Bytes of their files of names that are read in a turn, and how long that may take, of all processes.
const NAMES: u64 = 1 << 22;
const TIME: Duration = Duration::from_millis(100);
/// Bytes of the files of one that has ended, and how long all of these may take: there is no other turn then.
const LAST_NAMES: u64 = 1 << 26;
const LAST_TIME: Duration = Duration::from_secs(1);

impl Session {
    /// Processes name the code that they make.
    pub(super) fn read_own_code(&mut self, last: bool) {
        let now = monotonic_ns();
        let (ending, staying): (Vec<_>, Vec<_>) = self
            .tracked
            .values_mut()
            .filter(|tracked| tracked.managed.process.jit.is_sampled())
            .partition(|tracked| last || !tracked.is_here());
        let share = NAMES.checked_div(staying.len() as u64).unwrap_or(NAMES);
        for (those, bytes, time) in [(ending, LAST_NAMES, LAST_TIME), (staying, share, TIME)] {
            let deadline = clock::after(time);
            let mut left = u32::try_from(those.len()).unwrap_or(u32::MAX);
            for tracked in those {
                // What one has not needed is the next ones'.
                let time = deadline.saturating_duration_since(Instant::now());
                let until = Some(clock::after(time.checked_div(left).unwrap_or_default()));
                tracked
                    .managed
                    .process
                    .refresh_jit(now, &Turn { bytes, until });
                left = left.saturating_sub(1);
            }
        }
    }

    pub(super) fn flush(&mut self, last: bool) -> Result<(), SessionError> {
        self.tell_unseen(reader::notes());
        self.update_manifest();
        if let Some(raw) = &mut self.raw {
            raw.flush().map_err(|source| SessionError::Raw {
                path: self.options.output.join(RAW_DATA),
                source,
            })?;
        }
        self.read_own_code(last);
        let mut kept = Ok(());
        for tracked in self.tracked.values_mut() {
            let last = last || !tracked.is_here();
            // What one process says costs no other its names.
            kept = kept.and(self.recorder.keep_code(&mut tracked.managed, last));
        }
        let kept = kept.and(self.keep_calls(last));
        let flushed = kept.and(self.recorder.flush());
        if flushed.is_ok() && std::mem::take(&mut self.failing) {
            tracing::info!("the recording can be written again");
        }
        self.tolerate(flushed)
    }

    pub(super) fn record(&mut self, record: &SessionRecord) -> Result<(), SessionError> {
        let recorded = self.recorder.write(record);
        self.tolerate(recorded)
    }

    /// A disk that is full ends the session, while there is room to complete it. Other faults do
    /// not: what was written stays readable, what comes is kept up to a bound, counted beyond,
    /// and tried again at the next flush.
    pub(super) fn tolerate(
        &mut self,
        recorded: Result<(), RecorderError>,
    ) -> Result<(), SessionError> {
        let Err(error) = recorded else {
            return Ok(());
        };
        if error.is_full() {
            // Said once: its end is written as far as that is possible.
            if std::mem::replace(&mut self.full, true) {
                return Ok(());
            }
            return Err(SessionError::Full {
                folder: self.options.output.clone(),
            });
        }
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(
                "{error}; recording goes on, and is written when that is possible again"
            );
        }
        Ok(())
    }

    pub(super) fn update_manifest(&mut self) {
        let until = self.disabled.unwrap_or_else(Instant::now);
        let elapsed = until.duration_since(self.started).as_nanos() as u64;
        let writer = self.recorder.writer();
        let counts = writer.counts().clone();
        let bytes = writer.bytes_written();
        let manifest = writer.manifest_mut();
        manifest.duration_ns = elapsed;
        manifest.counts.throttled = self.throttled;
        manifest.counts.malformed = self.malformed;
        manifest.counts.filtered.clone_from(&self.filtered);
        manifest.counts.transitions = self.transitions;
        self.control
            .samples
            .store(counts.samples, Ordering::Relaxed);
        self.control.lost.store(counts.lost, Ordering::Relaxed);
        self.control.bytes.store(bytes, Ordering::Relaxed);
        let most = self.options.configured.config.limits.size;
        if let Some(most) = most.filter(|most| bytes >= *most && !self.over) {
            let note = format!("perf.data has the {most} bytes of limits.size: the session ended");
            tracing::info!("{note}");
            manifest.notes.push(note);
            self.over = true;
        }
        let targets = self
            .tracked
            .values()
            .filter(|tracked| tracked.held.is_none() && tracked.is_here())
            .count();
        self.control
            .processes
            .store(targets as u64, Ordering::Relaxed);
    }

    /// The kernel says what it had no room for when there is room again; at the end there may
    /// have been no such moment.
    pub(super) fn count_the_untold(&mut self) -> Result<(), SessionError> {
        let no_space = self
            .sampler(|sampler| sampler.source().no_space())?
            .unwrap_or(0);
        let untold = no_space.saturating_sub(self.lost);
        if untold == 0 {
            return Ok(());
        }
        self.record(&SessionRecord::Lost {
            time: MonotonicNs::new(monotonic_ns()),
            count: untold,
        })
    }
}
