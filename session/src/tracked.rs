//! What does a session know of a process that it looks at?

use super::filter::Gate;
use super::selection::Selection;
use super::tracker;
use std::time::Instant;
use varid_sampler::decode::Samples;
use varid_vm::ManagedProcess;

/// A process that the session looks at.
#[derive(Debug)]
pub struct Tracked {
    pub managed: ManagedProcess,
    pub names: Names,
    /// From this time on it counts for the service, and is recorded by the patterns, that it has.
    pub since: u64,
    /// Which of its samples are recorded, if not all.
    pub gate: Option<Box<Gate>>,
    /// Its samples wait for its name.
    pub held: Option<Samples>,
    /// It is varid's own child, and has not become the command yet.
    pub awaits_exec: bool,
    /// Why the methods of the process that it is a copy of are not seen, which is said of that one.
    pub copied: Option<String>,
    /// When it was forked or became another program: a VM may come up in it.
    pub born: Option<Instant>,
    /// In-body samples: tried, walked.
    pub trials: (u32, u32),
    pub main_thread_gone: bool,
    /// Nothing of it was left when it was looked for.
    pub dead_since: Option<Instant>,
    /// When it was known to have ended.
    pub ended: Option<Instant>,
    /// From this time on it is no longer asked for: the source does not look at it.
    pub left: Option<u64>,
}

impl Tracked {
    /// It runs, as far as is known, and is asked for.
    pub fn is_here(&self) -> bool {
        self.ended.is_none() && self.left.is_none()
    }
}

/// What processes are selected by.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// What it is called.
    pub called: String,
    /// The name by which it was found, or who forked it was.
    pub by: String,
}

impl Names {
    /// It was found by its own name.
    pub fn own(pid: u32) -> Self {
        let name = tracker::command_name(pid).unwrap_or_default();
        Self {
            called: name.clone(),
            by: name,
        }
    }

    pub fn are_in(&self, selection: &Selection) -> bool {
        selection.names(&self.called) || selection.names(&self.by)
    }
}
