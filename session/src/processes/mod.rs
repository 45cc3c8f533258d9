//! Which processes does a session track, and what does it know of each?
//!
//! | question | file |
//! |---|---|
//! | how does a process become recorded | `arrival` |
//! | which service does it count for, which of its methods are recorded | `assignment`, `memberships`, `selection` |
//! | what do VMs count | `calls` |
//! | what changes while it is recorded | `changes` |
//! | when is it recorded no longer | `departure`, `lifetime` |
//! | what is the code called that processes make | `jit` |
//! | how shall the source sample a process | `target` |
//! | what is known of one process | `tracked` |
//! | which processes match the target | `tracker` |
//! | why are methods not seen | `unseen` |

mod arrival;
mod assignment;
pub mod calls;
mod changes;
mod departure;
mod jit;
mod lifetime;
mod memberships;
pub mod selection;
mod target;
mod tracked;
pub mod tracker;
mod unseen;

pub use changes::{CommEvent, TaskEvent};
pub use tracked::{Accepted, Tracked};

use crate::filter::Filter;
use crate::recorder::{Recorder, RecorderError};
use calls::Calls;
use memberships::Memberships;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tracked::Names;
use tracker::Tracker;
use varid_model::{ById, MonotonicNs, Pid, Stack};
use varid_process::Images;
use varid_sampler::decode::Samples;
use varid_vm::seam::{CodeChange, VmCompiler};
use varid_vm::{ManagedProcess, VmKinds};

/// How long the session sleeps at most, in milliseconds: the delay of what `status` shows.
const IDLE_MS: u16 = 100;
/// The same while a process is young, or its VM compiles code. A method can only be read while its process lives.
const YOUNG_MS: u16 = 15;
/// The same while a VM throws code away. It can only be read while it is there.
const REPLACED_MS: u16 = 5;
/// The same while a name, an exec or a VM is awaited: what happens before it is found has no names.
const AWAITING_MS: u16 = 2;
/// How often processes are searched for where the source does not see all of them.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// The processes of a session.
#[derive(Debug)]
pub struct Processes {
    tracked: ById<Pid, Tracked>,
    /// Processes of the target that are not recorded: they may not be sampled, or are too many.
    refused: HashMap<Pid, Names>,
    tracker: Tracker,
    images: Images,
    calls: Calls,
    memberships: Memberships,
    options: ProcessOptions,
    /// Samples that have waited for their process's name, and are to be written.
    released: Samples,
    search: Search,
}

/// What is recorded of processes, and looked for in them.
#[derive(Debug, Clone, Copy)]
pub struct ProcessOptions {
    /// How many processes are recorded at once; None: all of them.
    pub limit: Option<u64>,
    /// How much of each stack is recorded.
    pub stack: Stack,
    /// The kinds of VM that are looked for.
    pub vms: VmKinds,
}

/// The search for processes of the target.
#[derive(Debug)]
struct Search {
    /// When it was last done.
    at: Instant,
    /// It has been logged that there is none.
    waiting_logged: bool,
    /// There has been one.
    found: bool,
}

impl Processes {
    /// No processes yet.
    pub fn new(tracker: Tracker, calls: Calls, options: ProcessOptions) -> Self {
        Self {
            tracked: ById::default(),
            refused: HashMap::new(),
            tracker,
            images: Images::new(options.vms.formats()),
            calls,
            memberships: Memberships::default(),
            options,
            released: Samples::new(),
            search: Search {
                at: Instant::now(),
                waiting_logged: false,
                found: false,
            },
        }
    }

    /// What is profiled.
    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// A process that is tracked.
    pub fn get_mut(&mut self, pid: Pid) -> Option<&mut Tracked> {
        self.tracked.get_mut(&pid)
    }

    /// Whether a process is tracked.
    pub fn contains(&self, pid: Pid) -> bool {
        self.tracked.contains_key(&pid)
    }

    /// Whether a process of the target has ever been there.
    pub fn ever_found(&self) -> bool {
        self.search.found
    }

    /// How many processes are profiled now.
    pub fn profiled(&self) -> usize {
        let profiled = self.tracked.values().filter(|one| one.is_profiled());
        profiled.count()
    }

    /// Whether the target is certain processes, and these have ended.
    pub fn target_has_ended(&self) -> bool {
        let ended = |one: &Tracked| one.lifetime.has_ended();
        self.tracker.selects_by_pid() && self.tracked.values().all(ended)
    }

    /// The samples that have waited for their process's name, which is known now.
    pub fn take_released(&mut self) -> Samples {
        std::mem::take(&mut self.released)
    }

    /// Whether a process that is not tracked may be recorded from its first sample on.
    pub fn may_start_with_sample(&self, pid: Pid) -> bool {
        let own = pid.get() == std::process::id();
        self.tracker.selects_all() && !own && !self.refused.contains_key(&pid)
    }

    /// A process of which nothing can be read any more.
    pub fn without_mappings(&self, pid: Pid) -> ManagedProcess {
        ManagedProcess::new(pid, self.options.vms)
    }

    /// Reads what can be seen now of a process that runs.
    fn read(&mut self, pid: Pid) -> ManagedProcess {
        ManagedProcess::running(pid, self.options.vms, &mut self.images)
    }

    /// Which samples of a process without a name are recorded; None: all of them.
    pub fn filter_without_name(&self) -> Option<Filter> {
        Filter::of(&self.tracker.selection().terms("", "").methods)
    }

    /// How long the session may sleep, in milliseconds.
    pub fn longest_sleep(&self) -> u16 {
        let active = self.tracked.values().filter(|one| one.is_active());
        let sleeps = active.map(|tracked| {
            let awaits_vm = tracked.is_young()
                && (tracked.managed.vm().is_none() || self.calls.awaits(tracked));
            let awaits = tracked.awaits_name() || tracked.awaits_exec() || awaits_vm;
            if awaits || tracked.is_new() {
                return AWAITING_MS;
            }
            let compiler = tracked.managed.vm().and_then(|vm| vm.compiler());
            let change = compiler.map(VmCompiler::change);
            match change.unwrap_or(CodeChange::None) {
                CodeChange::Replaced => REPLACED_MS,
                CodeChange::Added => YOUNG_MS,
                CodeChange::None if tracked.is_young() => YOUNG_MS,
                CodeChange::None => IDLE_MS,
            }
        });
        sleeps.min().unwrap_or(IDLE_MS)
    }

    /// Whether as many processes are recorded as may be.
    fn is_at_limit(&self) -> bool {
        let profiled = self.profiled() as u64;
        self.options.limit.is_some_and(|limit| profiled >= limit)
    }

    /// Whether a process is recorded from its first sample on only: as many of all processes as may be, the first that
    /// do anything.
    fn waits_for_samples(&self) -> bool {
        self.options.limit.is_some() && self.tracker.selects_all()
    }

    /// What the environment of the session's command must say: of methods only what holds for every process.
    pub fn environment(&mut self) -> Vec<(&'static str, String)> {
        let methods = self.tracker.selection().methods_of_all();
        let prefixes = methods.map_or_else(Vec::new, |methods| methods.prefixes());
        self.calls.environment(prefixes)
    }

    /// Reads what the VMs say of themselves now, and tells those that are new what to count.
    pub fn refresh_vms(&mut self) {
        for tracked in self.tracked.values_mut() {
            tracked.managed.end_batch();
        }
        self.calls.start_counting(&self.tracked);
    }

    /// Writes what VMs have counted. `latest`: the time of the latest record.
    pub fn save_calls(
        &mut self,
        last: bool,
        latest: MonotonicNs,
        recorder: &mut Recorder,
    ) -> Result<(), RecorderError> {
        let read = self.calls.read(&mut self.tracked, recorder, latest);
        read.and(self.calls.save(recorder, last))
    }
}
