//! Which ids do the threads of a process have for the process itself?

use std::collections::HashSet;
use varid_model::{Pid, Tid};

/// The most threads of a process that are looked at.
const MAX_THREADS: usize = 1 << 12;

/// Returns the ids of a process's threads in its own pid namespace, where its VM has them from. Empty if the process has ended.
pub fn own_tids(pid: Pid) -> HashSet<Tid> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten().take(MAX_THREADS);
    tasks
        .filter_map(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).ok()?;
            let ids = status
                .lines()
                .find_map(|line| line.strip_prefix("NSpid:"))?;
            let id = ids.split_whitespace().last()?.parse().ok()?;
            Some(Tid::new(id))
        })
        .collect()
}
