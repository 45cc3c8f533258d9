//! Loads the programs that walk the frames of VMs.
//!
//! The kernel needs a third of a second to accept one, and meanwhile the session must name samples: so a thread loads them.

use std::thread::{Builder, JoinHandle};
use varid_shim::Walker;

/// The programs of a source, and the thread that loads them.
#[derive(Debug)]
pub struct Loading {
    walkers: Vec<Walker>,
    state: State,
    /// True if a process has frames that they walk.
    needed: bool,
}

/// The state of the programs.
#[derive(Debug)]
enum State {
    Untried,
    /// A thread is loading them.
    Running(JoinHandle<()>),
    /// Each is loaded or refused.
    Over,
    /// The same, and a refusal has been reported.
    Reported,
}

impl Loading {
    /// Starts with no program loaded.
    pub fn new(walkers: Vec<Walker>) -> Self {
        Self {
            state: match walkers.is_empty() {
                true => State::Reported,
                false => State::Untried,
            },
            walkers,
            needed: false,
        }
    }

    /// Starts a thread that loads the programs, unless that was done before. Called when a VM is expected.
    pub fn start(&mut self) {
        if !matches!(self.state, State::Untried) {
            return;
        }
        let walkers = self.walkers.clone();
        let thread = Builder::new().name("varid-loader".to_owned());
        self.state = match thread.spawn(move || load(&walkers)) {
            Ok(thread) => State::Running(thread),
            Err(error) => {
                tracing::debug!(%error, "no thread loads the walkers: the session does");
                load(&self.walkers);
                State::Over
            }
        };
    }

    /// The same. Called when a process has frames that they walk.
    pub fn need(&mut self) {
        self.needed = true;
        self.start();
    }

    /// Waits until each program is loaded or refused.
    pub fn finish(&mut self) {
        self.start();
        match std::mem::replace(&mut self.state, State::Over) {
            // The thread does not panic, and each program stores its result.
            State::Running(thread) => drop(thread.join()),
            state => self.state = state,
        }
    }

    /// Returns true if each program is loaded or refused.
    pub fn is_over(&mut self) -> bool {
        if matches!(&self.state, State::Running(thread) if thread.is_finished()) {
            self.state = State::Over;
        }
        matches!(self.state, State::Over | State::Reported)
    }

    /// Returns the reason why the kernel refuses a program that a process needs, once.
    pub fn take_refusal(&mut self) -> Option<String> {
        if !self.needed || !self.is_over() || matches!(self.state, State::Reported) {
            return None;
        }
        self.state = State::Reported;
        // Each was tried before, so this only returns the result.
        let mut refusals = self.walkers.iter().filter_map(|one| one.load().err());
        refusals.next().map(|error| error.to_string())
    }
}

fn load(walkers: &[Walker]) {
    for walker in walkers {
        // The walker stores a refusal, which is reported when a process needs the program.
        let _ = walker.load();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::geteuid;
    use varid_shim::Shim;

    #[test]
    fn programs_are_loaded_by_a_thread_and_can_be_waited_for() {
        let mut nothing = Loading::new(Vec::new());
        nothing.need();
        assert!(nothing.is_over() && nothing.take_refusal().is_none());
        if !geteuid().is_root() {
            eprintln!("skipped: loading a program takes root");
            return;
        }
        let shim = Shim::load(0).unwrap();
        let mut loading = Loading::new(vec![shim.walker()]);
        assert!(!loading.is_over() && shim.walker().is_untried());
        loading.need();
        loading.finish();
        assert!(loading.is_over() && !shim.walker().is_untried());
        assert_eq!(loading.take_refusal(), None);
        // The shim is gone, and its maps with it.
        let walker = Shim::load(0).unwrap().walker();
        let mut refused = Loading::new(vec![walker]);
        refused.finish();
        assert_eq!(refused.take_refusal(), None, "nobody needs it");
        refused.need();
        assert!(refused.take_refusal().is_some());
        assert_eq!(refused.take_refusal(), None, "it is known");
    }
}
