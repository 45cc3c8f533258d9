//! Which processes wait for the program that walks their frames?
//!
//! The kernel takes a third of a second to accept that program, which most VMs need. The session has samples to name meanwhile: a thread loads
//! it.

use std::collections::HashMap;
use std::thread::{Builder, JoinHandle};
use varid_model::Pid;
use varid_shim::{Target, Walker};

/// The targets of these processes, and the thread that loads.
#[derive(Debug, Default)]
pub struct Waiting {
    targets: HashMap<Pid, Target>,
    loading: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Has these loaded by a thread. Whether that is over, or there is nothing to load.
    pub fn load(&mut self, walkers: &[Walker]) -> bool {
        if walkers.is_empty() {
            return true;
        }
        // Asked while it loads, a walker would answer when it has loaded.
        if self.is_loading() {
            return false;
        }
        if !walkers.iter().any(Walker::is_untried) {
            return true;
        }
        let theirs = walkers.to_vec();
        let thread = Builder::new().name("varid-loader".to_owned());
        match thread.spawn(move || load_here(&theirs)) {
            Ok(thread) => {
                self.loading = Some(thread);
                false
            }
            Err(error) => {
                tracing::debug!(%error, "no thread loads the walker: the session does");
                load_here(walkers);
                true
            }
        }
    }

    fn is_loading(&self) -> bool {
        let thread = self.loading.as_ref();
        thread.is_some_and(|thread| !thread.is_finished())
    }

    /// A process waits.
    pub fn add(&mut self, pid: Pid, target: Target) {
        self.targets.insert(pid, target);
    }

    /// A process waits no longer.
    pub fn remove(&mut self, pid: Pid) {
        self.targets.remove(&pid);
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The processes that have waited, if what they waited for is loaded now.
    pub fn take_loaded(&mut self) -> HashMap<Pid, Target> {
        match self.is_loading() {
            true => HashMap::new(),
            false => std::mem::take(&mut self.targets),
        }
    }
}

fn load_here(walkers: &[Walker]) {
    for walker in walkers {
        // A refusal is told with each process that needs it.
        let _ = walker.load();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::geteuid;
    use std::thread::yield_now;
    use varid_shim::Shim;

    #[test]
    fn a_process_waits_until_its_program_is_loaded_unless_it_is_removed() {
        if !geteuid().is_root() {
            eprintln!("skipped: loading a program takes root");
            return;
        }
        let shim = Shim::load(0).unwrap();
        // Frames of all kinds.
        let target = Target {
            rules: u32::MAX,
            ..Target::default()
        };
        let walkers = [shim.walker(&target).expect("a program for its frames")];
        let mut waiting = Waiting::default();
        assert!(waiting.load(&[]), "nothing to load");
        assert!(!waiting.load(&walkers));
        let (first, second) = (Pid::new(1), Pid::new(2));
        waiting.add(first, target.clone());
        waiting.add(second, target.clone());
        waiting.remove(second);
        let loaded = loop {
            let loaded = waiting.take_loaded();
            if !loaded.is_empty() {
                break loaded;
            }
            assert!(!waiting.is_empty());
            yield_now();
        };
        assert!(loaded.keys().eq([&first]));
        assert!(!walkers[0].is_untried());
        assert!(waiting.is_empty() && waiting.load(&walkers));
    }
}
