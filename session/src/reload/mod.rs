//! What does a session follow when its configuration file changes?

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

/// Changes that a recording tells of.
const MAX_CHANGES: usize = 256;

/// The configuration that a session follows, and the file that it comes from.
#[derive(Debug)]
pub struct Configuration {
    configured: Configured,
    /// None: there is no file.
    watch: Option<Watch>,
}

/// The parts of a session that a reload modifies.
#[derive(Debug)]
pub struct ReloadTargets<'a> {
    /// How often events are sampled.
    pub sampling: &'a Sampling,
    /// Which processes are recorded, and what of them.
    pub processes: &'a mut Processes,
    /// The recording says what changed, and when.
    pub output: &'a mut Output,
    /// So does `varid status`.
    pub control: &'a SessionControl,
}

impl Configuration {
    /// The configuration as the session starts with it.
    pub fn new(configured: Configured) -> Self {
        let file = configured.request.config.clone();
        Self {
            watch: file.map(|file| Watch::new(file, configured.stamp)),
            configured,
        }
    }

    /// The limits that hold now.
    pub fn limits(&self) -> &Limits {
        &self.configured.config.settings.limits
    }

    /// Follows the file if it has changed, and is valid.
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

    /// Follows another configuration as far as that is possible without a new session. Samples from `monotonic_ns()` on
    /// follow it, whenever they are read; earlier ones do not.
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

/// What became of a configuration that was read again, by the keys that took effect and those that will.
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
    /// Nothing changes, for this reason.
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

    /// Processes are recorded as the configuration says, from a time on.
    fn select(&mut self, config: &Config, time: MonotonicNs) -> Result<(), SessionError> {
        if let Some(target) = self.processes.configure(config) {
            self.control.set_target(target);
        }
        self.processes.reassign(time, self.sampling, self.output)
    }

    /// Changes the rate; false: the source cannot. Its own counters, and fixed periods, stay as they were opened.
    fn change_rate(&mut self, old: Rate, new: Rate) -> bool {
        let (Rate::Frequency(_), Rate::Frequency(hz)) = (old, new) else {
            return false;
        };
        let most = max_frequency().unwrap_or(u64::MAX);
        let sampling = self.sampling;
        let changed = sampling.with(|sampler| sampler.set_frequency(hz.min(most)));
        let changed = changed.unwrap_or_else(|error| {
            tracing::warn!("the rate stays what it was: {error}");
            false
        });
        if changed && hz > most {
            self.output.note(limited_rate_note(hz, most));
        }
        changed
    }

    /// The recording tells of a change.
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
