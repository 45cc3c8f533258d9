//! What does a session know of a process that it tracks, and what becomes of the process's samples?

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

/// Samples in the interpreter after which a VM's layout that has never led to frames is refused.
const LAYOUT_TRIALS: u32 = 50;
/// Samples that a process without a name may have waiting for it.
const MAX_HELD: usize = 10_000;
/// How long after its start a process is young: the VM that it has starts within this time.
const YOUTH: Duration = Duration::from_secs(2);
/// How long a process is new to the session. Many processes live for less than this, none of its methods is known yet, and a method
/// can only be read while its process lives.
const NEW: Duration = Duration::from_millis(100);

/// A process that the session tracks.
#[derive(Debug)]
pub struct Tracked {
    /// Its mappings, its VM and its methods.
    pub managed: ManagedProcess,
    /// What it is selected by.
    pub names: Names,
    /// From this time on it counts for the service, and is recorded by the patterns, that it has.
    pub since: MonotonicNs,
    /// Which of its samples are recorded; None: all of them.
    pub gate: Option<Box<Gate>>,
    /// Which of its mappings the recording knows.
    pub written: Written,
    stage: Stage,
    /// Why the methods of the process that it was forked by are not seen. The recording says so once, of that process.
    inherited_problem: Option<String>,
    layout: LayoutTrials,
    /// Whether the user has been told of its VM.
    vm_reported: bool,
    /// When it came and went.
    pub lifetime: Lifetime,
}

/// Whether a tracked process is recorded already.
#[derive(Debug)]
pub enum Stage {
    /// It is.
    Recorded,
    /// It was forked by a zygote and has no name yet. Its samples wait for the name.
    AwaitsName(Samples),
    /// It is the child of varid that will execute the command. What it does before is not the command's.
    AwaitsExec,
}

/// What becomes of a sample of a tracked process.
#[derive(Debug)]
pub enum Accepted {
    /// It is to be attributed and written.
    Write(Box<Sampled>),
    /// It is to be written after the sampler's target entry was updated: the VM's layout has just been refused.
    LayoutRefused(Box<Sampled>),
    /// It waits for the process's name.
    Held,
    /// Too many samples wait for that name: it is lost, at this time.
    Lost(MonotonicNs),
    /// It is of a time at which the process is not recorded.
    Dropped,
}

/// How often a VM's layout led from a sample in the interpreter to frames.
#[derive(Debug, Default, Clone, Copy)]
struct LayoutTrials {
    samples: u32,
    walked: u32,
}

impl Tracked {
    /// A process that counts from a time on for nothing in particular. `is_new`: a VM may start in it.
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

    /// Its id.
    pub fn pid(&self) -> Pid {
        self.managed.pid()
    }

    /// Whether it runs, as far as is known, and belongs to the target.
    pub fn is_active(&self) -> bool {
        self.lifetime.is_active()
    }

    /// Whether its samples wait for its name.
    pub fn awaits_name(&self) -> bool {
        matches!(self.stage, Stage::AwaitsName(_))
    }

    /// Whether it has not executed the command yet that it will become.
    pub fn awaits_exec(&self) -> bool {
        matches!(self.stage, Stage::AwaitsExec)
    }

    /// Whether it runs, and its name says that it belongs to the target.
    pub fn is_profiled(&self) -> bool {
        self.is_active() && !self.awaits_name()
    }

    /// Whether it started so recently that a VM may come up in it.
    pub fn is_young(&self) -> bool {
        self.lifetime.is_younger_than(YOUTH)
    }

    /// Whether the session has found it just now.
    pub fn is_new(&self) -> bool {
        self.lifetime.is_known_for_less_than(NEW)
    }

    /// It has its name: the samples that have waited for it. None: they do not wait.
    pub fn take_held(&mut self) -> Option<Samples> {
        match std::mem::replace(&mut self.stage, Stage::Recorded) {
            Stage::AwaitsName(samples) => Some(samples),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// It is a copy of a process whose methods are not seen for this reason.
    pub fn inherit_problem(&mut self, problem: Option<String>) {
        self.inherited_problem = problem;
    }

    /// Why the methods of the process that forked it are not seen.
    pub fn inherited_problem(&self) -> Option<&str> {
        self.inherited_problem.as_deref()
    }

    /// What its VM is, the first time that this is known: the VM is found again as it starts up.
    pub fn new_vm(&mut self) -> Option<String> {
        let vm = self.managed.vm()?.title();
        (!std::mem::replace(&mut self.vm_reported, true)).then_some(vm)
    }

    /// It executes another program.
    pub fn exec(&mut self) {
        self.managed.exec();
        self.mappings_replaced();
        self.inherited_problem = None;
        self.vm_reported = false;
        self.lifetime.restart();
    }

    /// All that was known of its mappings is outdated.
    pub fn mappings_replaced(&mut self) {
        if self.awaits_exec() {
            self.stage = Stage::Recorded;
        }
        self.layout = LayoutTrials::default();
    }

    /// Decides what becomes of a sample.
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
    /// Counts a sample in the interpreter; true: no sample has had frames, and it is the last one that was tried.
    fn refutes(&mut self, record: &CapturedSample) -> bool {
        self.samples = self.samples.saturating_add(1);
        let walked = u32::from(!record.frames.packed().is_empty());
        self.walked = self.walked.saturating_add(walked);
        self.samples == LAYOUT_TRIALS && self.walked == 0
    }
}

/// What a process is selected by.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The name of the process.
    pub own: String,
    /// The name that it was selected by: its own at that time, or that of the process that forked it.
    pub selected_by: String,
}

impl Names {
    /// The names of a process that is selected by its own.
    pub fn of(pid: Pid) -> Self {
        let name = tasks::command_name(pid).unwrap_or_default();
        Self {
            own: name.clone(),
            selected_by: name,
        }
    }

    /// Whether a process with these names is selected.
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
