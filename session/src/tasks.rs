//! Reads /proc for processes and threads.

use nix::unistd::Uid;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use varid_model::{Pid, Tid};
use varid_process::reader;

/// Returns all processes.
pub fn all_pids() -> Vec<Pid> {
    numbers("/proc").into_iter().map(Pid::new).collect()
}

/// Returns the threads of a process, or none if the process is gone.
pub fn threads(pid: Pid) -> Vec<Tid> {
    let tids = numbers(&format!("/proc/{pid}/task"));
    tids.into_iter().map(Tid::new).collect()
}

/// Returns the entries of a folder whose names are numbers.
fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns true if any thread of the process has not ended.
pub fn is_alive(pid: Pid) -> bool {
    // The main thread rarely ends before the others.
    has_not_ended(pid, pid.main_thread())
        || threads(pid).into_iter().any(|tid| has_not_ended(pid, tid))
}

fn has_not_ended(pid: Pid, tid: Tid) -> bool {
    // The id, the name in parentheses and the state come first.
    let mut stat = [0; 256];
    let read = File::open(format!("/proc/{pid}/task/{tid}/stat"))
        .and_then(|mut file| file.read(&mut stat))
        .unwrap_or(0);
    let start = stat.get(..read).unwrap_or_default();
    let behind_name = start.rsplit(|byte| *byte == b')').next();
    let state = behind_name.and_then(|rest| rest.trim_ascii_start().first());
    state.is_some_and(|state| !matches!(state, b'Z' | b'X'))
}

/// Returns the user that owns a process.
pub fn owner(pid: Pid) -> Option<Uid> {
    let metadata = fs::metadata(format!("/proc/{pid}")).ok()?;
    Some(Uid::from_raw(metadata.uid()))
}

/// Returns the name of a thread.
pub fn thread_name(pid: Pid, tid: Tid) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"))
        .ok()
        .map(|name| name.trim_end_matches('\n').to_owned())
}

/// Returns the whole name of a main thread whose name the kernel gives as `name`. The kernel truncates names to 15 bytes, but an
/// Android app's package is also its command line.
pub fn full_name(pid: Pid, name: String) -> String {
    let whole = |full: &String| full.starts_with(&name) || full.ends_with(&name);
    command_name(pid).filter(whole).unwrap_or(name)
}

/// Returns the first word of a process's command line. For an Android app it is the package.
pub fn command_name(pid: Pid) -> Option<String> {
    // The kernel reads it from the process's memory, which may block: a helper process reads it.
    let line = reader::contents(pid, "cmdline").ok()?;
    let first = line.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(first).into_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn this_process_is_alive_and_has_threads() {
        let pid = Pid::new(std::process::id());
        assert!(is_alive(pid) && all_pids().contains(&pid));
        assert!(threads(pid).contains(&pid.main_thread()));
    }

    /// A process with a chosen command line, until it is dropped.
    pub struct Named(pub Child);

    impl Named {
        pub fn new(name: &str) -> Self {
            let mut command = Command::new("cat");
            command
                .arg0(name)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            // When it answers, the exec is complete: the command line is the new program's.
            child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            Self(child)
        }

        pub fn pid(&self) -> Pid {
            Pid::new(self.0.id())
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_before_it_is_waited_for() {
        let mut named = Named::new("org.example.tracked");
        let pid = named.pid();
        assert!(is_alive(pid));
        named.0.kill().unwrap();
        let id = nix::sys::wait::Id::Pid(nix::unistd::Pid::from_raw(pid.get() as i32));
        let flags = nix::sys::wait::WaitPidFlag::WEXITED | nix::sys::wait::WaitPidFlag::WNOWAIT;
        nix::sys::wait::waitid(id, flags).unwrap();
        assert!(!is_alive(pid) && threads(pid) == [pid.main_thread()]);
        assert_eq!(command_name(pid), None);
        named.0.wait().unwrap();
        assert!(!is_alive(pid) && threads(pid).is_empty());
    }

    #[test]
    fn a_thread_is_called_as_it_calls_itself() {
        let thread = std::thread::Builder::new().name("varid) Z test".to_owned());
        let named = thread.spawn(|| {
            let tid = Tid::new(nix::unistd::gettid().as_raw() as u32);
            let pid = Pid::new(std::process::id());
            (thread_name(pid, tid), is_alive(pid))
        });
        assert_eq!(
            named.unwrap().join().unwrap(),
            (Some("varid) Z test".to_owned()), true)
        );
    }
}
