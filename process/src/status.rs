//! The user of a process and the pid namespace of its threads, from /proc/PID/status.

use varid_model::Pid;

/// The status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The effective user id, if it is known.
    pub uid: Option<u32>,
    /// Its threads have ids in a pid namespace of their own.
    pub namespaced: bool,
}

impl Status {
    /// Reads the current status. Nothing is known about a process that has ended.
    pub fn of(pid: Pid) -> Self {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let words = |key| {
            let mut lines = text.lines();
            lines.find_map(|line| Some(line.strip_prefix(key)?.split_whitespace()))
        };
        // Real, effective, saved, file system.
        let uid = words("Uid:").and_then(|mut ids| ids.nth(1)?.parse().ok());
        Self {
            uid,
            namespaced: words("NSpid:").is_some_and(|ids| ids.count() > 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_this_process_equals_proc_status() {
        let status = Status::of(Pid::new(std::process::id()));
        assert_eq!(status.uid, Some(nix::unistd::geteuid().as_raw()));
    }

    #[test]
    fn nothing_is_known_of_a_process_that_is_not_there() {
        let gone = Status::of(Pid::new(u32::MAX));
        assert_eq!((gone.uid, gone.namespaced), (None, false));
    }
}
