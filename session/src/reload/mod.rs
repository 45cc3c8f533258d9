//! Applies changes of the configuration file to a running session.

mod differences;
mod watch;

use super::SessionError;
use super::events::limited_rate_note;
use super::options::SessionControl;
use super::output::Output;
use super::processes::Processes;
use super::sampling::Sampling;
use crate::config::settings::Limits;
use crate::config::{Config, to_toml};
use crate::request::{Configured, TargetSpec};
use differences::{Differences, differences, merge_live};
use varid_model::{MonotonicNs, Rate};
use varid_recording::ConfigurationChange;
use varid_sampler::monotonic_ns;
use varid_sampler::open::max_frequency;
use watch::Watch;

/// Maximum number of changes in a recording.
const MAX_CHANGES: usize = 256;

/// The configuration of a session, and its file.
#[derive(Debug)]
pub struct Configuration {
    configured: Configured,
    /// None if there is no file.
    watch: Option<Watch>,
}

/// The parts of a session that a reload changes.
#[derive(Debug)]
pub struct ReloadTargets<'a> {
    /// The rates of events.
    pub sampling: &'a Sampling,
    /// The recorded processes and methods.
    pub processes: &'a mut Processes,
    /// The recording, which contains each change with its time.
    pub output: &'a mut Output,
    /// The status, which shows the last reload.
    pub control: &'a SessionControl,
}

impl Configuration {
    /// Starts with a session's configuration.
    pub fn new(configured: Configured) -> Self {
        let file = configured.request.config.clone();
        Self {
            watch: file.map(|file| Watch::new(file, configured.stamp)),
            configured,
        }
    }

    /// The current limits.
    pub fn limits(&self) -> &Limits {
        &self.configured.config.settings.limits
    }

    /// Applies the file if it has changed and is valid.
    pub fn reload(&mut self, mut session: ReloadTargets<'_>) -> Result<(), SessionError> {
        if !self.watch.as_mut().is_some_and(Watch::has_changed) {
            return Ok(());
        }
        match self.configured.request.read() {
            Err(error) => session.reject(error.to_string()),
            Ok(read) => {
                if let Some(watch) = &mut self.watch {
                    watch.was_read(read.stamp);
                }
                let selects_by_name = session.processes.tracker().selects_by_name();
                if selects_by_name && TargetSpec::named(&read.config).is_none() && !read.config.all
                {
                    session
                        .reject("apps and services are empty: nobody would be recorded".to_owned());
                    return Ok(());
                }
                self.apply(read.config, &mut session)?;
            }
        }
        Ok(())
    }

    /// Applies another configuration, as far as that is possible without a new session. It is valid for samples from
    /// `monotonic_ns()` on, whenever they are read, and not for earlier ones.
    fn apply(&mut self, new: Config, session: &mut ReloadTargets<'_>) -> Result<(), SessionError> {
        let old = &self.configured.config;
        let Differences {
            live: mut changed,
            later: mut waiting,
        } = differences(old, &new);
        let (old_rate, new_rate) = (
            old.settings.rate_or_default(),
            new.settings.rate_or_default(),
        );
        let mut effective = merge_live(old, new);
        if old_rate != new_rate {
            let key = match new_rate {
                Rate::Frequency(_) => "frequency",
                Rate::Period(_) => "period",
            };
            if session.change_rate(old_rate, new_rate) {
                effective.settings.rate = Some(new_rate);
                changed.push(key);
            } else {
                waiting.push(key);
            }
        }
        let time = monotonic_ns();
        self.configured.config = effective;
        let config = &self.configured.config;
        if !changed.is_empty() {
            session.select(config, time)?;
        }
        session.report(summary(&changed, &waiting));
        if !changed.is_empty() || !waiting.is_empty() {
            let owned = |keys: Vec<&str>| keys.into_iter().map(str::to_owned).collect();
            session.record(ConfigurationChange {
                time_ns: time,
                changed: owned(changed),
                waiting: owned(waiting),
                configuration: to_toml(config),
                error: None,
            });
        }
        Ok(())
    }
}

/// Returns the result of a reload, by the keys that took effect and those that will take effect later.
fn summary(changed: &[&str], waiting: &[&str]) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !changed.is_empty() {
        parts.push(format!("changed: {}", changed.join(", ")));
    }
    if !waiting.is_empty() {
        let keys = waiting.join(", ");
        parts.push(format!(
            "from the next session on, stop and start one: {keys}"
        ));
    }
    if parts.is_empty() {
        parts.push("nothing in it changed".to_owned());
    }
    format!("the configuration was read again; {}", parts.join("; "))
}

impl ReloadTargets<'_> {
    /// Rejects a change for this reason.
    fn reject(&mut self, error: String) {
        let message = format!("{error}; what stood before it still does");
        tracing::warn!("{message}");
        self.control.report_configuration(message);
        self.record(ConfigurationChange {
            time_ns: monotonic_ns(),
            changed: Vec::new(),
            waiting: Vec::new(),
            configuration: String::new(),
            error: Some(error),
        });
    }

    fn report(&self, summary: String) {
        tracing::info!("{summary}");
        self.control.report_configuration(summary);
    }

    /// Records processes according to the configuration, from a time on.
    fn select(&mut self, config: &Config, time: MonotonicNs) -> Result<(), SessionError> {
        if let Some(target) = self.processes.configure(config) {
            self.control.set_target(target);
        }
        self.processes.reassign(time, self.sampling, self.output)
    }

    /// Changes the rate. Returns false if the source does not support that. Counters of the source's own, and fixed periods, keep
    /// theirs.
    fn change_rate(&mut self, old: Rate, new: Rate) -> bool {
        let (Rate::Frequency(_), Rate::Frequency(hz)) = (old, new) else {
            return false;
        };
        let most = max_frequency().filter(|most| hz > *most);
        let sampling = self.sampling;
        let changed = sampling.with(|sampler| sampler.set_frequency(most.unwrap_or(hz)));
        let changed = changed.unwrap_or_else(|error| {
            tracing::warn!("the rate stays what it was: {error}");
            false
        });
        if let Some(most) = most.filter(|_| changed) {
            self.output.note(limited_rate_note(hz, most));
        }
        changed
    }

    /// Adds a change to the recording.
    fn record(&mut self, change: ConfigurationChange) {
        let changes = &mut self.output.recorder.changed_manifest().changes;
        if changes.len() < MAX_CHANGES {
            changes.push(change);
        } else {
            self.output.note(format!(
                "the configuration changed more than {MAX_CHANGES} times: later changes stood, and are not told of"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_changed_and_what_waits() {
        let read = "the configuration was read again; ";
        let said = summary(&["methods", "limits"], &["events"]);
        let both = "changed: methods, limits; from the next session on, stop and start one: events";
        assert_eq!(said, format!("{read}{both}"));
        assert_eq!(summary(&[], &[]), format!("{read}nothing in it changed"));
    }
}
