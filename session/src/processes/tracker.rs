//! Matches processes to the session's target by their names.

use super::selection::Selection;
use crate::request::TargetSpec;
use crate::tasks::{command_name, is_alive};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use varid_model::Pid;
use varid_process::clock;

/// The role of a process in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is profiled.
    Target,
    /// It is not profiled, but its children may be, which have no names of their own at the fork.
    Zygote,
    /// It is not profiled.
    Other,
}

/// How long a process that executes another program is a candidate: its name may change after the exec.
const EXEC_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a zygote's child is a candidate: it takes its name only after a long initialisation.
const ZYGOTE_CHILD_TIMEOUT: Duration = Duration::from_secs(30);

/// The target, and the processes that may match it later.
#[derive(Debug)]
pub struct Tracker {
    target: TargetSpec,
    selection: Selection,
    /// The candidates, each with the end of its time.
    candidates: HashMap<Pid, Instant>,
    zygotes: HashSet<Pid>,
}

/// Candidates with a decision.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// They match the target.
    pub matched: Vec<Pid>,
    /// They have ended, or their time is over.
    pub expired: Vec<Pid>,
}

impl Tracker {
    /// Makes a tracker without candidates. `selection`: the names that the target selects.
    pub fn new(target: TargetSpec, selection: Selection) -> Self {
        Self {
            target,
            selection,
            candidates: HashMap::new(),
            zygotes: HashSet::new(),
        }
    }

    /// The target.
    pub fn target(&self) -> &TargetSpec {
        &self.target
    }

    /// The configuration's settings for processes by their names.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Changes the selected names.
    pub fn select(&mut self, selection: Selection) {
        self.selection = selection;
    }

    /// Changes the target's names.
    pub fn rename_target(&mut self, target: TargetSpec) {
        self.target = target;
    }

    /// Returns true if the target consists of names.
    pub fn selects_by_name(&self) -> bool {
        matches!(self.target, TargetSpec::Named(..))
    }

    /// Returns true if the target is every process.
    pub fn selects_all(&self) -> bool {
        matches!(self.target, TargetSpec::All)
    }

    /// Returns true if the target consists of certain processes and their children: no others can match it later.
    pub fn selects_by_pid(&self) -> bool {
        match self.target {
            TargetSpec::Pids(_) | TargetSpec::Command(..) => true,
            TargetSpec::Named(..) | TargetSpec::All => false,
        }
    }

    /// Returns true if a process of the target may start a VM: a command, or a process selected by name.
    pub fn may_start_vm(&self) -> bool {
        matches!(self.target, TargetSpec::Command(..) | TargetSpec::Named(..))
    }

    /// Returns the command line if this process is the command that varid starts.
    pub fn command_line(&self, pid: Pid) -> Option<&str> {
        match &self.target {
            TargetSpec::Command(command, line) if *command == pid => Some(line),
            _ => None,
        }
    }

    /// Returns the role of a process, by its present command line.
    pub fn role(&mut self, pid: Pid) -> Role {
        let matches = match &self.target {
            TargetSpec::All => true,
            TargetSpec::Pids(pids) => pids.contains(&pid),
            TargetSpec::Command(command, _) => *command == pid,
            TargetSpec::Named(..) => match command_name(pid) {
                Some(name) if is_zygote(&name) => {
                    self.zygotes.insert(pid);
                    return Role::Zygote;
                }
                Some(name) => self.selection.names(&name),
                None => false,
            },
        };
        match matches {
            true => Role::Target,
            false => Role::Other,
        }
    }

    /// Returns true if a process is a zygote, whose children have no names of their own at the fork.
    pub fn is_zygote(&self, pid: Pid) -> bool {
        self.zygotes.contains(&pid)
    }

    /// Makes a process with a new name or program a candidate.
    pub fn add_candidate(&mut self, pid: Pid) {
        self.add_until(pid, EXEC_TIMEOUT);
    }

    /// Makes a zygote's child a candidate.
    pub fn add_zygote_child(&mut self, pid: Pid) {
        self.add_until(pid, ZYGOTE_CHILD_TIMEOUT);
    }

    fn add_until(&mut self, pid: Pid, timeout: Duration) {
        if self.selects_by_name() {
            let until = clock::after(timeout);
            let known = self.candidates.entry(pid).or_insert(until);
            *known = until.max(*known);
        }
    }

    /// Removes a candidate that has ended or is recorded.
    pub fn forget(&mut self, pid: Pid) {
        self.candidates.remove(&pid);
        self.zygotes.remove(&pid);
    }

    /// Checks every candidate once, and removes those with a decision.
    pub fn decide_candidates(&mut self) -> Decided {
        let now = Instant::now();
        let candidates = self.candidates.iter();
        let candidates: Vec<(Pid, Instant)> =
            candidates.map(|(pid, until)| (*pid, *until)).collect();
        let mut decided = Decided::default();
        for (pid, until) in candidates {
            if self.role(pid) == Role::Target {
                decided.matched.push(pid);
            } else if until <= now || !is_alive(pid) {
                // During an exec, a process is alive but temporarily has no command line.
                decided.expired.push(pid);
            } else {
                continue;
            }
            self.candidates.remove(&pid);
        }
        decided
    }
}

/// Returns true if a command has a name like Android's `zygote`, `zygote64`, `usap32`, `app_zygote`.
fn is_zygote(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("zygote") || name.starts_with("usap") || name.ends_with("_zygote")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use crate::tasks::tests::Named;
    use varid_recording::TargetKind;

    #[test]
    fn a_zygote_is_known_by_its_name() {
        assert!(is_zygote("zygote64") && is_zygote("com.a_zygote") && !is_zygote("org.zygote.app"));
    }

    fn app() -> Tracker {
        let config = parse("apps = [\"org.example.tracked\"]", |_| Ok(())).unwrap();
        let spec = TargetSpec::named(&config).unwrap();
        assert_eq!(
            spec,
            TargetSpec::Named(TargetKind::App, "org.example.tracked".to_owned())
        );
        Tracker::new(spec, Selection::of(&config))
    }

    fn of(spec: TargetSpec) -> Tracker {
        Tracker::new(spec, Selection::default())
    }

    fn decided(matched: &[Pid], expired: &[Pid]) -> Decided {
        let (matched, expired) = (matched.to_vec(), expired.to_vec());
        Decided { matched, expired }
    }

    #[test]
    fn a_process_is_a_target_by_its_id() {
        let pid = Pid::new(std::process::id());
        let mut tracker = of(TargetSpec::Pids(vec![pid]));
        assert_eq!(tracker.role(pid), Role::Target);
        assert_eq!(tracker.role(Pid::new(1)), Role::Other);
    }

    #[test]
    fn an_app_is_known_by_its_command_line() {
        let mut tracker = app();
        for (name, role) in [
            ("org.example.tracked", Role::Target),
            ("org.example.tracked:remote", Role::Target),
            ("org.example.other", Role::Other),
        ] {
            assert_eq!(tracker.role(Named::new(name).pid()), role, "{name}");
        }
        assert_eq!(
            tracker.role(Pid::new(u32::MAX >> 2)),
            Role::Other,
            "a process that is not there"
        );
    }

    #[test]
    fn the_children_of_a_zygote_are_unnamed_until_it_is_forgotten() {
        let zygote = Named::new("zygote64");
        let mut tracker = app();
        assert!(!tracker.is_zygote(zygote.pid()));
        assert_eq!(tracker.role(zygote.pid()), Role::Zygote);
        assert!(tracker.is_zygote(zygote.pid()));
        tracker.forget(zygote.pid());
        assert!(!tracker.is_zygote(zygote.pid()));
        // A session with another target does not follow zygotes.
        assert_eq!(
            of(TargetSpec::Pids(vec![Pid::new(1)])).role(zygote.pid()),
            Role::Other
        );
    }

    #[test]
    fn a_candidate_is_found_once() {
        let (target, other) = (
            Named::new("org.example.tracked"),
            Named::new("org.example.other"),
        );
        let mut tracker = app();
        tracker.add_candidate(target.pid());
        tracker.add_zygote_child(other.pid());
        assert_eq!(tracker.decide_candidates(), decided(&[target.pid()], &[]));
        assert_eq!(tracker.decide_candidates(), decided(&[], &[]));
        assert_eq!(
            tracker.candidates.keys().collect::<Vec<_>>(),
            [&other.pid()]
        );
        // A forgotten candidate is not checked.
        tracker.add_candidate(target.pid());
        tracker.forget(target.pid());
        assert_eq!(tracker.decide_candidates(), decided(&[], &[]));
    }

    #[test]
    fn a_candidate_expires_when_its_time_is_over_or_it_has_ended() {
        let other = Named::new("org.example.other");
        let mut tracker = app();
        tracker.add_until(other.pid(), Duration::ZERO);
        assert_eq!(tracker.decide_candidates(), decided(&[], &[other.pid()]));
        assert_eq!(tracker.decide_candidates(), decided(&[], &[]));
        // A shorter time does not replace a longer one.
        tracker.add_zygote_child(other.pid());
        tracker.add_until(other.pid(), Duration::ZERO);
        assert_eq!(tracker.decide_candidates(), decided(&[], &[]));
        let gone = other.pid();
        drop(other);
        assert_eq!(tracker.decide_candidates(), decided(&[], &[gone]));
    }

    #[test]
    fn a_process_without_a_command_line_is_matched_later() {
        let unnamed = Named::new("");
        assert_eq!(command_name(unnamed.pid()), None);
        let mut tracker = app();
        tracker.add_candidate(unnamed.pid());
        assert_eq!(tracker.decide_candidates(), decided(&[], &[]));
        assert!(tracker.candidates.contains_key(&unnamed.pid()));
    }

    #[test]
    fn only_an_app_has_candidates() {
        for spec in [
            TargetSpec::All,
            TargetSpec::Pids(vec![Pid::new(1)]),
            TargetSpec::Command(Pid::new(1), "x".to_owned()),
        ] {
            let mut tracker = of(spec);
            tracker.add_candidate(Pid::new(std::process::id()));
            assert_eq!(tracker.decide_candidates(), decided(&[], &[]));
        }
    }
}
