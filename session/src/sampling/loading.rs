//! When are the programs loaded that walk the frames of VMs?
//!
//! The kernel takes a third of a second to accept one, and the session has samples to name meanwhile: a thread loads them.

use std::thread::{Builder, JoinHandle};
use varid_shim::Walker;

/// The programs of a source, and the thread that loads them.
#[derive(Debug)]
pub struct Loading {
    walkers: Vec<Walker>,
    state: State,
    /// A process has frames that they walk.
    needed: bool,
}

/// How far the programs are.
#[derive(Debug)]
enum State {
    Untried,
    /// The thread loads them.
    Running(JoinHandle<()>),
    /// Each is loaded or refused.
    Over,
    /// The same, and a refusal has been handed out.
    Reported,
}

impl Loading {
    /// Nothing is loaded yet.
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

    /// Has a thread load the programs, if that has not begun: a VM is expected.
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

    /// The same: a process has frames that they walk.
    pub fn need(&mut self) {
        self.needed = true;
        self.start();
    }

    /// Waits until each program is loaded or refused.
    pub fn finish(&mut self) {
        self.start();
        match std::mem::replace(&mut self.state, State::Over) {
            // It does not panic, and each program keeps what has become of it.
            State::Running(thread) => drop(thread.join()),
            state => self.state = state,
        }
    }

    /// Whether each program is loaded or refused.
    pub fn is_over(&mut self) -> bool {
        if matches!(&self.state, State::Running(thread) if thread.is_finished()) {
            self.state = State::Over;
        }
        matches!(self.state, State::Over | State::Reported)
    }

    /// Why the kernel refuses a program that a process needs: once, when that is known.
    pub fn take_refusal(&mut self) -> Option<String> {
        if !self.needed || !self.is_over() || matches!(self.state, State::Reported) {
            return None;
        }
        self.state = State::Reported;
        // Each has been tried: this only asks.
        let mut refusals = self.walkers.iter().filter_map(|one| one.load().err());
        refusals.next().map(|error| error.to_string())
    }
}

fn load(walkers: &[Walker]) {
    for walker in walkers {
        // The walker keeps a refusal; it is reported when a process needs the program.
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
        // Its maps have gone with the shim.
        let walker = Shim::load(0).unwrap().walker();
        let mut refused = Loading::new(vec![walker]);
        refused.finish();
        assert_eq!(refused.take_refusal(), None, "nobody needs it");
        refused.need();
        assert!(refused.take_refusal().is_some());
        assert_eq!(refused.take_refusal(), None, "it is known");
    }
}
