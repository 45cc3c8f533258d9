//! Reads the state of a process from /proc/PID/stat (proc(5)).

/// Returns the fields after the name, which may contain any character, from the state on. None if there is no such
/// process.
fn stat(pid: &str) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Returns true if a process runs. A zombie does not.
pub fn is_alive(pid: &str) -> bool {
    stat(pid).is_some_and(|fields| !fields[0].starts_with(['Z', 'X']))
}

/// Returns true if a signal has stopped the process.
pub fn is_stopped(pid: &str) -> bool {
    stat(pid).is_some_and(|fields| fields[0] == "T")
}

/// Returns the CPU time of a process in user space and in the kernel, in hundredths of a second.
pub fn ticks(pid: &str) -> Option<u64> {
    let fields = stat(pid)?;
    let times = fields.get(11..13)?.iter();
    times.map(|time| time.parse::<u64>().ok()).sum()
}
