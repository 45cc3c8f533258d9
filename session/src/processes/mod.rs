//! The processes that a session tracks, and their state.
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
use varid_sampler::decode::{RingEvent, Samples, Stamped};
use varid_vm::seam::{CodeChange, VmCompiler};
use varid_vm::{ManagedProcess, VmKinds};

/// Maximum sleep of the session, in milliseconds: the delay of what `status` shows.
const IDLE_MS: u16 = 100;
/// The same while a process is young, or its VM compiles code. A method can only be read while its process lives.
const YOUNG_MS: u16 = 15;
/// The same while a VM discards code, which can be read only until then.
const REPLACED_MS: u16 = 5;
/// The same while a name, an exec or a VM is expected: code that runs before it is found has no names.
const AWAITING_MS: u16 = 2;
/// The interval of searches for processes if the source does not report all of them.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// The processes of a session.
#[derive(Debug)]
pub struct Processes {
    tracked: ById<Pid, Tracked>,
    /// Processes of the target that are not recorded: sampling them is not permitted, or there are too many.
    refused: HashMap<Pid, Names>,
    tracker: Tracker,
    images: Images,
    calls: Calls,
    memberships: Memberships,
    options: ProcessOptions,
    /// Samples that have waited for their process's name, and can be written now.
    released: Samples,
    search: Search,
}

/// Options for the processes.
#[derive(Debug, Clone, Copy)]
pub struct ProcessOptions {
    /// Maximum number of processes that are recorded at once, or None for no limit.
    pub limit: Option<u64>,
    /// How much of each stack is recorded.
    pub stack: Stack,
    /// The kinds of VM that are detected.
    pub vms: VmKinds,
}

/// The search for processes of the target.
#[derive(Debug)]
struct Search {
    /// Time of the last search.
    at: Instant,
    /// True if it has been logged that no process was found.
    waiting_logged: bool,
    /// True if a process has been found.
    found: bool,
}

impl Processes {
    /// Starts without processes.
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

    /// The tracker of the target.
    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// Returns a tracked process.
    pub fn get_mut(&mut self, pid: Pid) -> Option<&mut Tracked> {
        self.tracked.get_mut(&pid)
    }

    /// Returns true if a process is tracked.
    pub fn contains(&self, pid: Pid) -> bool {
        self.tracked.contains_key(&pid)
    }

    /// Returns true if a process of the target has ever been found.
    pub fn ever_found(&self) -> bool {
        self.search.found
    }

    /// The number of processes that are profiled now.
    pub fn profiled(&self) -> usize {
        let profiled = self.tracked.values().filter(|one| one.is_profiled());
        profiled.count()
    }

    /// Returns true if the target consists of certain processes, and these have ended.
    pub fn target_has_ended(&self) -> bool {
        let ended = |one: &Tracked| one.lifetime.has_ended();
        self.tracker.selects_by_pid() && self.tracked.values().all(ended)
    }

    /// Returns the samples that have waited for their process's name and can be written now.
    pub fn take_released(&mut self) -> Samples {
        std::mem::take(&mut self.released)
    }

    /// Returns true if a process that is not tracked may be recorded from its first sample on.
    pub fn may_start_with_sample(&self, pid: Pid) -> bool {
        let own = pid.get() == std::process::id();
        self.tracker.selects_all() && !own && !self.refused.contains_key(&pid)
    }

    /// Returns the state of a process of which nothing can be read any more.
    pub fn without_mappings(&self, pid: Pid) -> ManagedProcess {
        ManagedProcess::new(pid, self.options.vms)
    }

    /// Reads the current state of a running process.
    fn read(&mut self, pid: Pid) -> ManagedProcess {
        ManagedProcess::running(pid, self.options.vms, &mut self.images)
    }

    /// Returns the filter for samples of a process without a name, or None if all are recorded.
    pub fn filter_without_name(&self) -> Option<Filter> {
        Filter::of(&self.tracker.selection().terms("", "").methods)
    }

    /// Returns how long the session may sleep, in milliseconds.
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

    /// Returns true if the limit of recorded processes is reached.
    fn is_at_limit(&self) -> bool {
        let profiled = self.profiled() as u64;
        self.options.limit.is_some_and(|limit| profiled >= limit)
    }

    /// Returns true if processes are recorded only from their first sample on. With a limit on all processes, the first active ones
    /// are recorded.
    fn waits_for_samples(&self) -> bool {
        self.options.limit.is_some() && self.tracker.selects_all()
    }

    /// Returns the variables that the environment of the session's command must have. They filter methods only by the patterns for
    /// every process.
    pub fn environment(&mut self) -> Vec<(&'static str, String)> {
        let methods = self.tracker.selection().methods_of_all();
        let prefixes = methods.map_or_else(Vec::new, |methods| methods.prefixes());
        self.calls.environment(prefixes)
    }

    /// Tells the VMs of the samples that are about to be attributed.
    pub fn expect(&self, records: &[Stamped]) {
        for record in records {
            if let RingEvent::Sample(sampled) = &record.event
                && let Some(tracked) = self.tracked.get(&sampled.record.pid)
            {
                tracked.managed.expect(&sampled.record);
            }
        }
    }

    /// Reads what the VMs publish, and orders new ones to count.
    pub fn refresh_vms(&mut self) {
        for tracked in self.tracked.values_mut() {
            tracked.managed.end_batch();
        }
        self.calls.start_counting(&self.tracked);
    }

    /// Writes the counts of VMs. `latest`: the time of the latest record.
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
