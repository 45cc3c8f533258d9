//! What happens when a session's configuration file changes while it records? It is reloaded.

use super::events::limited_rate_note;
use super::filter::Gate;
use super::selection::Selection;
use super::tracked::Names;
use super::tracker;
use super::{Session, SessionError};
use crate::config::{Config, to_toml};
use crate::request::{Stamp, TargetSpec};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use varid_model::{MonotonicNs, Pid, Rate};
use varid_recording::{ConfigurationChange, Membership};
use varid_sampler::monotonic_ns;
use varid_sampler::open::max_frequency;
use varid_shim::target_flags;

/// How often the file is looked at. One that was found changed is read at the next look that finds
/// it as it was: whoever writes it may not have finished.
const LOOK: Duration = Duration::from_millis(200);
/// Changes that a recording tells of; memberships.
const MAX_CHANGES: usize = 256;
const MAX_MEMBERSHIPS: usize = 1 << 16;

/// A file that may change.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// As it was when it was read; None: it could not be.
    read: Option<Stamp>,
    /// As it was at the last look.
    seen: Option<Stamp>,
    looked: Instant,
}

impl Watch {
    /// Watches a file that was read with this stamp.
    pub fn new(path: PathBuf, read: Option<Stamp>) -> Self {
        Self {
            path,
            read,
            seen: read,
            looked: Instant::now(),
        }
    }

    /// Whether it is another one than was read, and has been since the last look.
    fn has_changed(&mut self) -> bool {
        if self.looked.elapsed() < LOOK {
            return false;
        }
        self.looked = Instant::now();
        let now = Stamp::at(&self.path).ok();
        let settled = now == self.seen;
        self.seen = now;
        let changed = settled && now != self.read;
        if changed {
            self.read = now;
        }
        changed
    }
}

/// Keys that are different in two configurations.
#[derive(Debug, Default, PartialEq, Eq)]
struct Differences {
    /// They can stand at once.
    live: Vec<&'static str>,
    /// They stand from the next session on.
    later: Vec<&'static str>,
}

fn differences(old: &Config, new: &Config) -> Differences {
    let pick = |all: &[(&'static str, bool)]| -> Vec<&'static str> {
        let different = all.iter().filter(|(_, same)| !same);
        different.map(|(key, _)| *key).collect()
    };
    let names = pick(&[
        ("apps", old.apps == new.apps),
        ("services", old.services == new.services),
    ]);
    let mut live = pick(&[
        ("methods", old.methods == new.methods),
        ("limits", old.limits == new.limits),
        ("app", old.app == new.app),
        ("service", old.service == new.service),
    ]);
    let mut later = pick(&[
        ("all", old.all == new.all),
        ("events", old.events == new.events),
        (
            "stack",
            old.stack.unwrap_or_default() == new.stack.unwrap_or_default(),
        ),
        (
            "mode",
            old.tactic.unwrap_or_default() == new.tactic.unwrap_or_default(),
        ),
    ]);
    // Whether there are names or all are recorded is one question.
    let named = if old.all == new.all {
        &mut live
    } else {
        &mut later
    };
    named.splice(0..0, names);
    Differences { live, later }
}

/// The new configuration's keys that change while a session runs, the old one's for the rest.
fn merge_live(old: &Config, new: Config) -> Config {
    let mut both = Config {
        all: old.all,
        events: old.events.clone(),
        rate: old.rate,
        stack: old.stack,
        tactic: old.tactic,
        ..new
    };
    if new.all != old.all {
        both.apps.clone_from(&old.apps);
        both.services.clone_from(&old.services);
        // What these are stays known.
        for name in &old.services {
            if both.processes_of(name).is_none()
                && let Some(service) = old.service.get(name)
            {
                both.service.insert(name.clone(), service.clone());
            }
        }
    }
    both
}

impl Session {
    /// Looks whether there is another configuration, and takes it if it is a right one.
    pub(super) fn reload(&mut self) -> Result<(), SessionError> {
        if !self.watch.as_mut().is_some_and(Watch::has_changed) {
            return Ok(());
        }
        match self.options.configured.request.read() {
            Err(error) => self.keep(error.to_string()),
            Ok(read) => {
                if let Some(watch) = &mut self.watch {
                    // It may have changed once more.
                    watch.read = read.stamp;
                }
                if let (TargetSpec::Named(..), None) =
                    (&self.options.target, TargetSpec::named(&read.config))
                    && !read.config.all
                {
                    self.keep("apps and services are empty: nobody would be recorded".to_owned());
                    return Ok(());
                }
                self.apply(read.config)?;
            }
        }
        Ok(())
    }

    /// Nothing changes, and why is said.
    fn keep(&mut self, error: String) {
        tracing::warn!("{error}; what stood before it still does");
        self.control
            .tell(format!("{error}; what stood before it still does"));
        self.note_change(ConfigurationChange {
            time_ns: MonotonicNs::new(monotonic_ns()),
            changed: Vec::new(),
            waiting: Vec::new(),
            configuration: String::new(),
            error: Some(error),
        });
    }

    /// From now on another configuration stands, as far as it can without a new session: every
    /// sample of after `monotonic_ns()` follows it, whenever it is read, none of before does.
    pub(super) fn apply(&mut self, new: Config) -> Result<(), SessionError> {
        let old = &self.options.configured.config;
        let Differences {
            live: mut changed,
            later: mut waiting,
        } = differences(old, &new);
        let (old_rate, new_rate) = (old.rate_or_default(), new.rate_or_default());
        let mut effective = merge_live(old, new);
        if old_rate != new_rate {
            let key = match new_rate {
                Rate::Frequency(_) => "frequency",
                Rate::Period(_) => "period",
            };
            if self.change_rate(old_rate, new_rate) {
                effective.rate = Some(new_rate);
                changed.push(key);
            } else {
                waiting.push(key);
            }
        }
        let time = monotonic_ns();
        self.options.configured.config = effective;
        if !changed.is_empty() {
            self.select(time)?;
        }
        let mut said: Vec<String> = Vec::new();
        if !changed.is_empty() {
            said.push(format!("changed: {}", changed.join(", ")));
        }
        if !waiting.is_empty() {
            let keys = waiting.join(", ");
            said.push(format!(
                "from the next session on, stop and start one: {keys}"
            ));
        }
        if said.is_empty() {
            said.push("nothing in it changed".to_owned());
        }
        let said = format!("the configuration was read again; {}", said.join("; "));
        tracing::info!("{said}");
        self.control.tell(said);
        if !changed.is_empty() || !waiting.is_empty() {
            let owned = |keys: Vec<&str>| keys.into_iter().map(str::to_owned).collect();
            self.note_change(ConfigurationChange {
                time_ns: MonotonicNs::new(time),
                changed: owned(changed),
                waiting: owned(waiting),
                configuration: to_toml(&self.options.configured.config),
                error: None,
            });
        }
        Ok(())
    }

    /// Whether the rate could be changed: a source's own counters, and periods that are fixed, are
    /// what they were opened as.
    fn change_rate(&mut self, old: Rate, new: Rate) -> bool {
        let (Rate::Frequency(_), Rate::Frequency(hz)) = (old, new) else {
            return false;
        };
        let most = max_frequency().unwrap_or(u64::MAX);
        let changed = self.sampler(|sampler| sampler.set_frequency(hz.min(most)));
        let changed = changed.unwrap_or_else(|error| {
            tracing::warn!("the rate stays what it was: {error}");
            false
        });
        if changed && hz > most {
            self.note(limited_rate_note(hz, most));
        }
        changed
    }

    /// Says something that is worth knowing of the recording, once.
    pub(super) fn note(&mut self, note: String) {
        if !self.recorder.writer().manifest_mut().notes.contains(&note) {
            tracing::warn!("{note}");
            self.recorder.manifest_news().notes.push(note);
        }
    }

    /// Who is recorded, and what of whom, is as the configuration says.
    fn select(&mut self, time: u64) -> Result<(), SessionError> {
        let config = &self.options.configured.config;
        self.tracker.selection = Selection::of(config);
        if let (TargetSpec::Named(..), Some(target)) =
            (&self.options.target, TargetSpec::named(config))
        {
            self.control.target_is(target.to_string());
            self.options.target = target;
        }
        let by_name = matches!(self.options.target, TargetSpec::Named(..));
        let wanted =
            |session: &Self, names: &Names| !by_name || names.are_in(&session.tracker.selection);
        let decided = self.tracked.iter();
        let decided = decided.filter(|(_, one)| one.held.is_none() && one.ended.is_none());
        let pids: Vec<u32> = decided.map(|(pid, _)| *pid).collect();
        for pid in pids {
            let Some(tracked) = self.tracked.get(&pid) else {
                continue;
            };
            match (wanted(self, &tracked.names), tracked.left.is_some()) {
                (true, false) => self.assign(pid, time),
                (false, false) => self.leave(pid, time)?,
                (true, true) => {
                    let begun = self.begin(pid, tracked.names.clone());
                    self.or_not_profiled(pid, begun)?;
                }
                (false, true) => {}
            }
        }
        for (pid, names) in std::mem::take(&mut self.refused) {
            // Whoever is one of all comes with his next sample.
            self.sampler(|sampler| sampler.remove_target(pid))?;
            let all = matches!(self.options.target, TargetSpec::All);
            if !all && wanted(self, &names) && tracker::is_alive(pid) {
                let begun = self.begin(pid, names);
                self.or_not_profiled(pid, begun)?;
            }
        }
        if by_name {
            self.find_those_that_run()?;
        }
        Ok(())
    }

    /// A process is no longer recorded, from a time on.
    fn leave(&mut self, pid: u32, time: u64) -> Result<(), SessionError> {
        let Some(tracked) = self.tracked.get_mut(&pid) else {
            return Ok(());
        };
        let called = &tracked.names.called;
        tracing::info!("process {pid} ({called}) is no longer recorded");
        // What it did before may still be in the rings.
        tracked.left = Some(time);
        let counted = self
            .calls
            .read_last(tracked, &mut self.recorder, self.handled);
        self.tolerate(counted)?;
        self.ignore(pid);
        for other in self.sampler(|sampler| sampler.let_go(pid)) {
            let sampled = self.sample_threads(other);
            self.or_not_profiled(other, sampled)?;
        }
        Ok(())
    }

    /// The shim does not look at a process, nor at what it forks.
    pub(super) fn ignore(&mut self, pid: u32) {
        let stranger = varid_shim::Target {
            flags: target_flags::IGNORE,
            ..Default::default()
        };
        if let Err(error) = self.sampler(|sampler| sampler.set_target(pid, &stranger)) {
            // Its samples are dropped here, then.
            tracing::warn!("process {pid} is sampled although it is not recorded: {error}");
        }
    }

    /// From a time on, and not before what was so assigned last, or its first sample, a process
    /// counts for the service, and is recorded by the patterns, that the configuration has for its name.
    pub(super) fn assign(&mut self, pid: u32, time: u64) {
        let here = self.tracked.get_mut(&pid);
        let Some(tracked) = here.filter(|tracked| tracked.left.is_none()) else {
            return;
        };
        let time = time.max(tracked.since);
        tracked.since = time;
        let selection = &self.tracker.selection;
        let terms = selection.terms(&tracked.names.called, &tracked.names.by);
        self.calls.restrict(pid, terms.methods.prefixes());
        if tracked.gate.is_some() || !terms.methods.is_empty() {
            let gate = tracked.gate.get_or_insert_with(|| Box::new(Gate::open()));
            gate.change(time, &terms.methods, &mut tracked.managed);
        }
        if self.members.get(&pid) == terms.service.as_ref() {
            return;
        }
        match &terms.service {
            Some(service) => drop(self.members.insert(pid, service.clone())),
            None => drop(self.members.remove(&pid)),
        }
        let memberships = &mut self.recorder.manifest_news().memberships;
        if memberships.len() < MAX_MEMBERSHIPS {
            memberships.push(Membership {
                pid: Pid::new(pid),
                since_ns: MonotonicNs::new(time),
                service: terms.service.as_deref().map(str::to_owned),
            });
        } else {
            self.note(format!(
                "processes came to services or left them more than {MAX_MEMBERSHIPS} times: later samples count for what their process was by then"
            ));
        }
    }

    fn note_change(&mut self, change: ConfigurationChange) {
        let changes = &mut self.recorder.manifest_news().changes;
        if changes.len() < MAX_CHANGES {
            changes.push(change);
        } else {
            self.note(format!(
                "the configuration changed more than {MAX_CHANGES} times: later changes stood, and are not told of"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn between(old: &str, new: &str) -> Differences {
        let config = |text: &str| parse(text, |_| Ok(())).unwrap();
        differences(&config(old), &config(new))
    }

    #[test]
    fn every_key_of_the_format_is_changed_at_once_or_later() {
        let all = [
            ("apps = [\"a\"]", "apps"),
            ("services = [\"media\"]", "services"),
            ("methods = [\"a.*\"]", "methods"),
            ("[limits]\nsize = \"2 MB\"", "limits"),
            ("[app.a]\nmethods = [\"a.*\"]", "app"),
            ("[service.media]\nmethods = [\"a.*\"]", "service"),
        ];
        for (text, key) in all {
            let expected = Differences {
                live: vec![key],
                later: Vec::new(),
            };
            assert_eq!(between("", text), expected);
        }
        // Names instead of all, or all instead of names, are one change that waits.
        let kinds = between(
            "apps = [\"a\"]\nfrequency = 9",
            "all = true\n[limits]\nsize = \"2 MB\"",
        );
        assert_eq!(
            (kinds.live, kinds.later),
            (vec!["limits"], vec!["apps", "all"])
        );
        let later = [
            ("all = true", "all"),
            ("events = [\"cycles\"]", "events"),
            ("stack = \"full\"", "stack"),
            ("tactic = \"method-invoke\"", "mode"),
        ];
        for (text, key) in later {
            let expected = Differences {
                live: Vec::new(),
                later: vec![key],
            };
            assert_eq!(between("", text), expected);
        }
        // What is the default may be said or not.
        let default = "stack = \"vertical\"\ntactic = \"load-from-dex\"\n";
        assert_eq!(between("", default), Differences::default());
    }

    #[test]
    fn who_is_recorded_stays_while_another_kind_of_target_waits() {
        let config = |text: &str| parse(text, |_| Ok(())).unwrap();
        let own = "services = [\"own\"]\n[service.own]\nprocesses = [\"x\"]\n";
        let both = merge_live(&config(own), config("all = true\nmethods = [\"a.*\"]\n"));
        assert!(!both.all && both.services == ["own"] && !both.methods.is_empty());
        assert_eq!(both.processes_of("own").unwrap()[0].text(), "x");
        let both = merge_live(&config("all = true\n"), config("apps = [\"a\"]\n"));
        assert!(both.all && both.apps.is_empty());
    }

    #[test]
    fn a_file_is_read_when_it_has_stopped_changing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("varid.toml");
        std::fs::write(&path, "a").unwrap();
        let mut watch = Watch::new(path.clone(), Stamp::at(&path).ok());
        let mut look = || {
            watch.looked = Instant::now().checked_sub(LOOK).unwrap();
            watch.has_changed()
        };
        assert!(!look() && !look());
        std::fs::write(&path, "ab").unwrap();
        assert!(!look(), "it may still be written");
        std::fs::write(&path, "abc").unwrap();
        assert!(!look());
        assert!(look());
        assert!(!look());
        std::fs::remove_file(&path).unwrap();
        assert!(!look(), "an editor may be replacing it");
        assert!(look() && !look());
        std::fs::write(&path, "a").unwrap();
        assert!(!look() && look());
    }
}
