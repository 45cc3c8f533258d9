//! How is the program for all rules loaded while samples come in?
//!
//! A verifier takes a while to accept it: a second, where a processor is slow. Meanwhile rings fill up, which those empty who have the shim.

use super::{BpfError, load, map_error};
use aya::Ebpf;
use aya::maps::{MapData, ProgramArray};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The program for all rules of a shim, which it goes over to once it is loaded. It can be loaded without the shim.
#[derive(Clone)]
pub struct Walker(Arc<Mutex<Programs>>);

/// A shim's programs.
struct Programs {
    ebpf: Ebpf,
    /// Name of the program for all rules.
    any: &'static str,
    /// Where the entry point looks for it; None: the kernel cannot go over to it.
    walkers: Option<ProgramArray<MapData>>,
    state: State,
}

/// Whether the program is loaded.
enum State {
    Untried,
    Loaded,
    /// What the kernel said. It would say the same again.
    Refused(String),
}

impl std::fmt::Debug for Walker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walker").finish_non_exhaustive()
    }
}

impl Walker {
    pub(super) fn new(
        ebpf: Ebpf,
        any: &'static str,
        walkers: Option<ProgramArray<MapData>>,
    ) -> Self {
        Self(Arc::new(Mutex::new(Programs {
            ebpf,
            any,
            walkers,
            state: State::Untried,
        })))
    }

    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs something with the object that the programs are of.
    pub(super) fn with_object<R>(&self, run: impl FnOnce(&Ebpf) -> R) -> R {
        run(&self.programs().ebpf)
    }

    /// The same, with programs that are changed.
    pub(super) fn with_object_mut<R>(&self, run: impl FnOnce(&mut Ebpf) -> R) -> R {
        run(&mut self.programs().ebpf)
    }

    /// Whether loading the program takes time still.
    pub fn is_untried(&self) -> bool {
        matches!(self.programs().state, State::Untried)
    }

    /// Loads the program, if that was not tried before.
    ///
    /// # Errors
    ///
    /// The kernel refuses it, or has refused it before.
    pub fn load(&self) -> Result<(), BpfError> {
        let mut programs = self.programs();
        if matches!(programs.state, State::Untried) {
            programs.state = match programs.load() {
                Ok(()) => State::Loaded,
                Err(error) => State::Refused(error.to_string()),
            };
        }
        match &programs.state {
            State::Refused(problem) => Err(BpfError::NoWalker(problem.clone())),
            State::Untried | State::Loaded => Ok(()),
        }
    }
}

impl Programs {
    fn load(&mut self) -> Result<(), BpfError> {
        let walkers = self.walkers.as_mut().ok_or(BpfError::NoTailCalls)?;
        let begun = Instant::now();
        load(&mut self.ebpf, self.any)?;
        let program = self.ebpf.program(self.any);
        let program = program.ok_or(BpfError::Missing(self.any))?;
        walkers
            .set(0, program.fd()?, 0)
            .map_err(map_error("walkers"))?;
        tracing::debug!(program = self.any, took = ?begun.elapsed(), "loaded");
        Ok(())
    }
}
