//! Whose process is it, and by which ids does it know its threads? From /proc/PID/status.

use varid_model::Pid;

/// What a process's status says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The effective user id, if it is known.
    pub uid: Option<u32>,
    /// Its threads know themselves by ids of a pid namespace of its own.
    pub namespaced: bool,
}

impl Status {
    /// As it is now; of a process that has ended, nothing is known.
    pub fn of(pid: Pid) -> Self {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let words = |key| {
            let mut lines = text.lines();
            lines.find_map(|line| Some(line.strip_prefix(key)?.split_whitespace()))
        };
        // Real, effective, saved, of files.
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
