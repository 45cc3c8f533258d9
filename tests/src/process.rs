//! What does the kernel say of a process? By /proc/PID/stat (proc(5)).

/// What is behind the name, which may hold anything: the state and what follows. None: there is no such process.
fn stat(pid: &str) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Whether a process runs: one that nobody has waited for does not.
pub fn is_alive(pid: &str) -> bool {
    stat(pid).is_some_and(|fields| !fields[0].starts_with(['Z', 'X']))
}

/// Whether a process was stopped by a signal.
pub fn is_stopped(pid: &str) -> bool {
    stat(pid).is_some_and(|fields| fields[0] == "T")
}

/// How long a process has worked, in user space and in the kernel, in hundredths of a second.
pub fn ticks(pid: &str) -> Option<u64> {
    let fields = stat(pid)?;
    let times = fields.get(11..13)?.iter();
    times.map(|time| time.parse::<u64>().ok()).sum()
}
