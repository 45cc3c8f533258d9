//! Who is profiled: the processes that match the target, when they come and as they go.

use super::selection::Selection;
use crate::request::TargetSpec;
use nix::unistd::Uid;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use varid_process::clock;
use varid_process::reader;

/// What a process is to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Profiled.
    Target,
    /// Not profiled; its children come unnamed.
    Zygote,
    /// Not profiled.
    Stranger,
}

/// How long a process that has become another program is looked at: its name may follow.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a zygote's child is: it will have a name, but has a lot to do before.
const PATIENCE_WITH_CHILD: Duration = Duration::from_secs(30);

/// The processes that may become targets.
#[derive(Debug)]
pub struct Tracker {
    spec: TargetSpec,
    /// Who has one of the names.
    pub selection: Selection,
    /// Until when each is looked at.
    candidates: HashMap<u32, Instant>,
    zygotes: HashSet<u32>,
}

impl Tracker {
    /// Nobody is known yet.
    pub fn new(spec: TargetSpec, selection: Selection) -> Self {
        Self {
            spec,
            selection,
            candidates: HashMap::new(),
            zygotes: HashSet::new(),
        }
    }

    /// What is profiled.
    pub fn spec(&self) -> &TargetSpec {
        &self.spec
    }

    /// What a process is, by its command line as it is now.
    pub fn role(&mut self, pid: u32) -> Role {
        let matches = match &self.spec {
            TargetSpec::All => true,
            TargetSpec::Pids(wanted) => wanted.contains(&pid),
            TargetSpec::Command(wanted, _) => *wanted == pid,
            TargetSpec::Named(..) => match command_name(pid) {
                Some(name) if is_zygote(&name) => {
                    self.zygotes.insert(pid);
                    return Role::Zygote;
                }
                Some(name) => self.selection.names(&name),
                None => false,
            },
        };
        if matches {
            Role::Target
        } else {
            Role::Stranger
        }
    }

    /// The child of a zygote has no name of its own yet.
    pub fn is_child_of_zygote(&self, parent: u32) -> bool {
        self.zygotes.contains(&parent)
    }

    /// The process has a new name, or runs a new program: it may soon have the target's.
    pub fn watch(&mut self, pid: u32) {
        self.watch_for(pid, PATIENCE);
    }

    /// A zygote's child, whose samples wait for its name.
    pub fn watch_child(&mut self, pid: u32) {
        self.watch_for(pid, PATIENCE_WITH_CHILD);
    }

    fn watch_for(&mut self, pid: u32, patience: Duration) {
        if matches!(self.spec, TargetSpec::Named(..)) {
            let until = clock::after(patience);
            let known = self.candidates.entry(pid).or_insert(until);
            *known = until.max(*known);
        }
    }

    /// The process has ended, or has been decided on.
    pub fn forget(&mut self, pid: u32) {
        self.candidates.remove(&pid);
        self.zygotes.remove(&pid);
    }

    /// Looks at every candidate once: those that have become targets, and those that have
    /// been looked at long enough.
    pub fn look(&mut self) -> (Vec<u32>, Vec<u32>) {
        let now = Instant::now();
        let candidates: Vec<(u32, Instant)> = self
            .candidates
            .iter()
            .map(|(pid, until)| (*pid, *until))
            .collect();
        let (mut found, mut given_up) = (Vec::new(), Vec::new());
        for (pid, until) in candidates {
            if self.role(pid) == Role::Target {
                found.push(pid);
            } else if until <= now || !is_alive(pid) {
                // A process in the middle of an exec is alive and has no command line for a moment.
                given_up.push(pid);
            } else {
                continue;
            }
            self.candidates.remove(&pid);
        }
        (found, given_up)
    }
}

/// Every process that there is.
pub fn all_pids() -> Vec<u32> {
    fs::read_dir("/proc")
        .map(|entries| {
            entries
                .flatten()
                .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                .collect()
        })
        .unwrap_or_default()
}

/// The threads of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .map(|entries| {
            entries
                .flatten()
                .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                .collect()
        })
        .unwrap_or_default()
}

/// Whether any thread of the process is left that has not ended.
pub fn is_alive(pid: u32) -> bool {
    // The main thread may have ended before the others, but seldom has.
    has_not_ended(pid, pid) || threads(pid).into_iter().any(|tid| has_not_ended(pid, tid))
}

fn has_not_ended(pid: u32, tid: u32) -> bool {
    // Number, name and state come first.
    let mut stat = [0; 256];
    let read = File::open(format!("/proc/{pid}/task/{tid}/stat"))
        .and_then(|mut file| file.read(&mut stat))
        .unwrap_or(0);
    let start = stat.get(..read).unwrap_or_default();
    let behind_name = start.rsplit(|byte| *byte == b')').next();
    let state = behind_name.and_then(|rest| rest.trim_ascii_start().first());
    state.is_some_and(|state| !matches!(state, b'Z' | b'X'))
}

/// The user whose process it is.
pub fn owner(pid: u32) -> Option<Uid> {
    let managed = fs::metadata(format!("/proc/{pid}")).ok()?;
    Some(Uid::from_raw(managed.uid()))
}

/// The name that a thread has given itself.
pub fn thread_name(pid: u32, tid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"))
        .ok()
        .map(|name| name.trim_end_matches('\n').to_owned())
}

/// The name of a main thread, whole: the kernel cuts it at 15 bytes, but a package is its
/// process's command line, too.
pub fn full_name(pid: u32, name: String) -> String {
    let whole = |full: &String| full.starts_with(&name) || full.ends_with(&name);
    command_name(pid).filter(whole).unwrap_or(name)
}

/// The first word of a process's command line: an Android app's is its package.
pub fn command_name(pid: u32) -> Option<String> {
    // It is the process's memory.
    let line = reader::contents(pid, "cmdline").ok()?;
    let first = line.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(first).into_owned()).filter(|name| !name.is_empty())
}

/// Android's `zygote`, `zygote64`, `usap32`, `app_zygote` and the like.
fn is_zygote(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("zygote") || name.starts_with("usap") || name.ends_with("_zygote")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use std::io::{Read, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use varid_recording::TargetKind;

    #[test]
    fn a_zygote_is_known_by_its_name() {
        assert!(is_zygote("zygote64") && is_zygote("com.a_zygote") && !is_zygote("org.zygote.app"));
    }

    #[test]
    fn this_process_is_alive_and_has_threads() {
        let pid = std::process::id();
        assert!(is_alive(pid) && threads(pid).contains(&pid) && all_pids().contains(&pid));
        assert_eq!(of(TargetSpec::Pids(vec![pid])).role(pid), Role::Target);
        assert_eq!(of(TargetSpec::Pids(vec![pid])).role(1), Role::Stranger);
    }

    /// A process with a command line of our choice, until it is dropped.
    struct Named(Child);

    impl Named {
        fn new(name: &str) -> Self {
            let mut command = Command::new("cat");
            command
                .arg0(name)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            // Once it answers, the exec is over: the command line is the new program's.
            child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            Self(child)
        }

        fn pid(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
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

    #[test]
    fn an_app_is_known_by_its_command_line() {
        let mut tracker = app();
        for (name, role) in [
            ("org.example.tracked", Role::Target),
            ("org.example.tracked:remote", Role::Target),
            ("org.example.other", Role::Stranger),
        ] {
            assert_eq!(tracker.role(Named::new(name).pid()), role, "{name}");
        }
        assert_eq!(
            tracker.role(u32::MAX >> 2),
            Role::Stranger,
            "a process that is not there"
        );
    }

    #[test]
    fn the_children_of_a_zygote_are_unnamed_until_it_is_forgotten() {
        let zygote = Named::new("zygote64");
        let mut tracker = app();
        assert!(!tracker.is_child_of_zygote(zygote.pid()));
        assert_eq!(tracker.role(zygote.pid()), Role::Zygote);
        assert!(tracker.is_child_of_zygote(zygote.pid()));
        tracker.forget(zygote.pid());
        assert!(!tracker.is_child_of_zygote(zygote.pid()));
        // A session that wants something else does not follow zygotes.
        assert_eq!(
            of(TargetSpec::Pids(vec![1])).role(zygote.pid()),
            Role::Stranger
        );
    }

    #[test]
    fn a_candidate_is_found_once() {
        let (wanted, other) = (
            Named::new("org.example.tracked"),
            Named::new("org.example.other"),
        );
        let mut tracker = app();
        tracker.watch(wanted.pid());
        tracker.watch_child(other.pid());
        assert_eq!(tracker.look(), (vec![wanted.pid()], vec![]));
        assert_eq!(tracker.look(), (vec![], vec![]));
        assert_eq!(
            tracker.candidates.keys().collect::<Vec<_>>(),
            [&other.pid()]
        );
        // A forgotten one is not looked at.
        tracker.watch(wanted.pid());
        tracker.forget(wanted.pid());
        assert_eq!(tracker.look(), (vec![], vec![]));
    }

    #[test]
    fn a_stranger_is_given_up_when_patience_ends_or_it_has_gone() {
        let other = Named::new("org.example.other");
        let mut tracker = app();
        tracker.watch_for(other.pid(), Duration::ZERO);
        assert_eq!(tracker.look(), (vec![], vec![other.pid()]));
        assert_eq!(tracker.look(), (vec![], vec![]));
        // A shorter patience does not end a longer one.
        tracker.watch_child(other.pid());
        tracker.watch_for(other.pid(), Duration::ZERO);
        assert_eq!(tracker.look(), (vec![], vec![]));
        let gone = other.pid();
        drop(other);
        assert_eq!(tracker.look(), (vec![], vec![gone]));
    }

    #[test]
    fn a_process_without_a_command_line_yet_is_looked_at_again() {
        let unnamed = Named::new("");
        assert_eq!(command_name(unnamed.pid()), None);
        let mut tracker = app();
        tracker.watch(unnamed.pid());
        assert_eq!(tracker.look(), (vec![], vec![]));
        assert!(tracker.candidates.contains_key(&unnamed.pid()));
    }

    #[test]
    fn only_an_app_has_candidates() {
        for spec in [
            TargetSpec::All,
            TargetSpec::Pids(vec![1]),
            TargetSpec::Command(1, "x".to_owned()),
        ] {
            let mut tracker = of(spec);
            tracker.watch(std::process::id());
            assert_eq!(tracker.look(), (vec![], vec![]));
        }
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_before_it_is_waited_for() {
        let mut named = Named::new("org.example.tracked");
        let pid = named.pid();
        assert!(is_alive(pid));
        named.0.kill().unwrap();
        let id = nix::sys::wait::Id::Pid(nix::unistd::Pid::from_raw(pid as i32));
        let flags = nix::sys::wait::WaitPidFlag::WEXITED | nix::sys::wait::WaitPidFlag::WNOWAIT;
        nix::sys::wait::waitid(id, flags).unwrap();
        assert!(!is_alive(pid) && threads(pid) == [pid]);
        assert_eq!(command_name(pid), None);
        named.0.wait().unwrap();
        assert!(!is_alive(pid) && threads(pid).is_empty());
    }

    #[test]
    fn a_thread_is_called_as_it_calls_itself() {
        let thread = std::thread::Builder::new().name("varid) Z test".to_owned());
        let named = thread.spawn(|| {
            let tid = nix::unistd::gettid().as_raw() as u32;
            (
                thread_name(std::process::id(), tid),
                is_alive(std::process::id()),
            )
        });
        assert_eq!(
            named.unwrap().join().unwrap(),
            (Some("varid) Z test".to_owned()), true)
        );
    }
}
