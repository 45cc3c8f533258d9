//! Loads the program for all rules while samples arrive.
//!
//! The verifier needs a second for it on a slow processor. Meanwhile rings fill up, which the owner of the shim must drain.

use super::{BpfError, load, map_error};
use aya::Ebpf;
use aya::maps::{MapData, ProgramArray};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The program for all rules of a shim, which tail-calls it once it is loaded. It can be loaded without holding the shim.
#[derive(Clone)]
pub struct Walker(Arc<Mutex<Programs>>);

/// A shim's programs.
struct Programs {
    ebpf: Ebpf,
    /// Name of the program for all rules.
    any: &'static str,
    /// The map in which the entry point finds it, or None if the kernel does not support such tail calls.
    walkers: Option<ProgramArray<MapData>>,
    state: State,
}

/// Whether the program is loaded.
enum State {
    Untried,
    Loaded,
    /// The kernel's error. Another attempt would fail in the same way.
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

    /// Calls `run` with the object that contains the programs.
    pub(super) fn with_object<R>(&self, run: impl FnOnce(&Ebpf) -> R) -> R {
        run(&self.programs().ebpf)
    }

    /// The same, with mutable access.
    pub(super) fn with_object_mut<R>(&self, run: impl FnOnce(&mut Ebpf) -> R) -> R {
        run(&mut self.programs().ebpf)
    }

    /// Returns true if loading has not been tried yet: it will take time.
    pub fn is_untried(&self) -> bool {
        matches!(self.programs().state, State::Untried)
    }

    /// Loads the program, unless that was tried before.
    ///
    /// # Errors
    ///
    /// The kernel refuses it, now or before.
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
