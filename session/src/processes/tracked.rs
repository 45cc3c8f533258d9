//! The state of a tracked process, and the decision on its samples.

use super::lifetime::Lifetime;
use super::selection::Selection;
use crate::filter::Gate;
use crate::recorder::Written;
use crate::tasks;
use std::time::Duration;
use varid_model::{MonotonicNs, Pid};
use varid_sampler::decode::{Sampled, Samples};
use varid_shim::{CapturedSample, flags};
use varid_vm::ManagedProcess;

/// Number of samples in the interpreter after which a layout that has never found frames is rejected.
const LAYOUT_TRIALS: u32 = 50;
/// Maximum number of samples that wait for a process's name.
const MAX_HELD: usize = 10_000;
/// How long after its start a process is young. Its VM starts within this time.
const YOUTH: Duration = Duration::from_secs(2);
/// How long a process is new to the session. Many processes live for less than this, none of their methods is known yet, and a
/// method can only be read while its process lives.
const NEW: Duration = Duration::from_millis(100);

/// A tracked process.
#[derive(Debug)]
pub struct Tracked {
    /// Its mappings, its VM and its methods.
    pub managed: ManagedProcess,
    /// The names by which it is selected.
    pub names: Names,
    /// The time from which on its service and its patterns are valid.
    pub since: MonotonicNs,
    /// Decides which of its samples are recorded. None if all are.
    pub gate: Option<Box<Gate>>,
    /// The mappings that have been written to the recording.
    pub written: Written,
    stage: Stage,
    /// The reason why methods of its parent are missing. The recording has it once, for the parent.
    inherited_problem: Option<String>,
    layout: LayoutTrials,
    /// True if the user was informed of its VM.
    vm_reported: bool,
    /// Its start and end.
    pub lifetime: Lifetime,
}

/// The stage of a tracked process.
#[derive(Debug)]
pub enum Stage {
    /// It is recorded.
    Recorded,
    /// It was forked by a zygote and has no name yet. Its samples wait for the name.
    AwaitsName(Samples),
    /// It is varid's child that will execute the command. Samples before the exec do not belong to the command.
    AwaitsExec,
}

/// The decision on a sample of a tracked process.
#[derive(Debug)]
pub enum Accepted {
    /// It must be attributed and written.
    Write(Box<Sampled>),
    /// It must be written after the process's target in the source was updated, because the VM's layout has just been rejected.
    LayoutRefused(Box<Sampled>),
    /// It waits for the process's name.
    Held,
    /// It is lost, at this time, because too many samples wait for the name.
    Lost(MonotonicNs),
    /// The process was not recorded at its time.
    Dropped,
}

/// Checks whether a VM's layout finds frames for samples in the interpreter.
#[derive(Debug, Default, Clone, Copy)]
struct LayoutTrials {
    samples: u32,
    walked: u32,
}

impl Tracked {
    /// Makes a process that is recorded without a service from a time on. `is_new`: a VM may start in it.
    pub fn new(
        managed: ManagedProcess,
        names: Names,
        since: MonotonicNs,
        stage: Stage,
        is_new: bool,
    ) -> Self {
        Self {
            managed,
            names,
            since,
            gate: None,
            written: Written::default(),
            stage,
            inherited_problem: None,
            layout: LayoutTrials::default(),
            vm_reported: false,
            lifetime: Lifetime::new(is_new),
        }
    }

    /// The process's id.
    pub fn pid(&self) -> Pid {
        self.managed.pid()
    }

    /// Returns true if it is running, as far as known, and belongs to the target.
    pub fn is_active(&self) -> bool {
        self.lifetime.is_active()
    }

    /// Returns true if its samples wait for its name.
    pub fn awaits_name(&self) -> bool {
        matches!(self.stage, Stage::AwaitsName(_))
    }

    /// Returns true if it has not executed the command yet.
    pub fn awaits_exec(&self) -> bool {
        matches!(self.stage, Stage::AwaitsExec)
    }

    /// Returns true if it is running, and belongs to the target by its name.
    pub fn is_profiled(&self) -> bool {
        self.is_active() && !self.awaits_name()
    }

    /// Returns true if it started so recently that a VM may start in it.
    pub fn is_young(&self) -> bool {
        self.lifetime.is_younger_than(YOUTH)
    }

    /// Returns true if the session has just found it.
    pub fn is_new(&self) -> bool {
        self.lifetime.is_known_for_less_than(NEW)
    }

    /// Ends the wait for its name. Returns the samples that have waited, or None if it did not wait.
    pub fn take_held(&mut self) -> Option<Samples> {
        match std::mem::replace(&mut self.stage, Stage::Recorded) {
            Stage::AwaitsName(samples) => Some(samples),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Marks it as a copy of a process whose methods are missing for this reason.
    pub fn inherit_problem(&mut self, problem: Option<String>) {
        self.inherited_problem = problem;
    }

    /// The reason why methods of its parent are missing.
    pub fn inherited_problem(&self) -> Option<&str> {
        self.inherited_problem.as_deref()
    }

    /// Returns a description of its VM, once, when it is first known. The VM is found again as it starts up.
    pub fn new_vm(&mut self) -> Option<String> {
        let vm = self.managed.vm()?.title();
        (!std::mem::replace(&mut self.vm_reported, true)).then_some(vm)
    }

    /// Handles an exec.
    pub fn exec(&mut self) {
        self.managed.exec();
        self.mappings_replaced();
        self.inherited_problem = None;
        self.vm_reported = false;
        self.lifetime.restart();
    }

    /// Handles the replacement of all its mappings.
    pub fn mappings_replaced(&mut self) {
        if self.awaits_exec() {
            self.stage = Stage::Recorded;
        }
        self.layout = LayoutTrials::default();
    }

    /// Decides on a sample.
    pub fn accept(&mut self, sampled: Box<Sampled>) -> Accepted {
        let record = &sampled.record;
        let time = record.time;
        if self.awaits_exec() || self.lifetime.has_left_by(time) {
            return Accepted::Dropped;
        }
        if let Stage::AwaitsName(held) = &mut self.stage {
            if held.len() >= MAX_HELD {
                return Accepted::Lost(time);
            }
            held.push(sampled);
            return Accepted::Held;
        }
        if record.has(flags::IN_BODY) && self.layout.refutes(record) {
            self.managed.refuse_vm(LAYOUT_TRIALS);
            return Accepted::LayoutRefused(sampled);
        }
        Accepted::Write(sampled)
    }
}

impl LayoutTrials {
    /// Counts a sample in the interpreter. Returns true at the last trial if no sample has had frames.
    fn refutes(&mut self, record: &CapturedSample) -> bool {
        self.samples = self.samples.saturating_add(1);
        let walked = u32::from(!record.frames.packed().is_empty());
        self.walked = self.walked.saturating_add(walked);
        self.samples == LAYOUT_TRIALS && self.walked == 0
    }
}

/// The names by which a process is selected.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The name of the process.
    pub own: String,
    /// The name by which it was selected: its own at that time, or its parent's.
    pub selected_by: String,
}

impl Names {
    /// Returns the names of a process that is selected by its own name.
    pub fn of(pid: Pid) -> Self {
        let name = tasks::command_name(pid).unwrap_or_default();
        Self {
            own: name.clone(),
            selected_by: name,
        }
    }

    /// Returns true if a process with these names is selected.
    pub fn are_in(&self, selection: &Selection) -> bool {
        selection.names(&self.own) || selection.names(&self.selected_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_vm::VmKinds;

    fn sampled(packed: usize) -> Box<Sampled> {
        let mut sampled = Box::<Sampled>::default();
        sampled.record.flags = flags::IN_BODY;
        sampled.record.time = MonotonicNs::new(7);
        let entries = vec![Default::default(); packed];
        sampled.record.frames.set_packed(&entries);
        sampled
    }

    fn tracked(stage: Stage) -> Tracked {
        let managed = ManagedProcess::new(Pid::new(1), VmKinds::default());
        Tracked::new(managed, Names::default(), MonotonicNs::ZERO, stage, false)
    }

    #[test]
    fn samples_wait_for_a_name_up_to_a_limit() {
        let mut process = tracked(Stage::AwaitsName(Vec::new()));
        for _ in 0..MAX_HELD {
            assert!(matches!(process.accept(sampled(0)), Accepted::Held));
        }
        let lost = process.accept(sampled(0));
        assert!(matches!(lost, Accepted::Lost(time) if time.get() == 7));
        assert_eq!(process.take_held().map(|held| held.len()), Some(MAX_HELD));
        assert!(process.take_held().is_none());
        assert!(matches!(process.accept(sampled(0)), Accepted::Write(_)));
    }

    #[test]
    fn the_command_has_no_samples_before_its_exec() {
        let mut process = tracked(Stage::AwaitsExec);
        assert!(matches!(process.accept(sampled(0)), Accepted::Dropped));
        process.exec();
        assert!(matches!(process.accept(sampled(0)), Accepted::Write(_)));
    }

    #[test]
    fn a_layout_is_refused_once_if_it_never_led_to_frames() {
        let refused = |frames: &[usize]| {
            let mut process = tracked(Stage::Recorded);
            let samples = frames.iter().map(|frames| process.accept(sampled(*frames)));
            samples
                .filter(|sample| matches!(sample, Accepted::LayoutRefused(_)))
                .count()
        };
        let none = vec![0; 2 * LAYOUT_TRIALS as usize];
        assert_eq!(refused(&none), 1);
        assert_eq!(refused(&[&[1], &none[..]].concat()), 0);
    }
}
