//! What have VMs counted of the calls of each method (the tactic method-invoke)?
//!
//! A VM counts as long as the session holds its control page. Its counts are read at every flush, and once more when the VM or the
//! session has ended: the file of counts outlives the process. They are written to contexts.data.

mod contexts;
mod counting;
mod missing;

use super::tracked::Tracked;
use crate::notes::Notes;
use crate::recorder::{Recorder, RecorderError};
use contexts::CallContexts;
use counting::Counting;
use missing::MissingEvents;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};
use varid_model::{ById, MonotonicNs, Pid};
use varid_process::{open_calls, take_control};
use varid_recording::{CALLS_LOG, Tactic};
use varid_sampler::monotonic_ns;
use varid_tunnel::abi::{self, VmFile};
use varid_tunnel::control::{ControlPage, Order};
use varid_vm::seam::Agent;

/// How often the counts of a running session are written.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);
/// The last note where more processes have calls that are not counted than notes are written.
const FURTHER: &str = "the calls of further processes are not, or not all, counted either";
/// The environment in which a VM counts from its start on.
const TACTIC: &str = "VARID_TACTIC";
const LOG: &str = "VARID_CALL_LOG";
const FILTERS: &str = "VARID_CALL_FILTERS";
/// The separator of filters there. No pattern of methods has it.
const SEPARATOR: &str = ";";

/// What VMs count, and have counted.
#[derive(Debug, Default)]
pub struct Calls {
    /// What VMs are to do; None: nothing.
    order: Option<Order>,
    vms: HashMap<Pid, Counting>,
    /// The prefixes of the names of the methods that a process counts. A process without an entry counts all methods.
    filters: HashMap<Pid, Vec<String>>,
    /// The same, in the environment of the session's command.
    at_start: Vec<String>,
    /// Processes whose VMs have no control page, as far as is known, and whether varid's part is in the VM.
    without_control: BTreeMap<Pid, bool>,
    contexts: CallContexts,
    missing: MissingEvents,
    /// Why the calls of a process are not counted.
    notes: Notes,
    saved: Option<Instant>,
}

impl Calls {
    /// The counting of a session in this folder. `log`: a line is logged for each event, too.
    pub fn new(tactic: Tactic, log: bool, folder: &Path) -> Self {
        let order = || Order {
            tactic: abi::TACTIC_METHOD_INVOKE,
            // Each VM's own.
            session: 0,
            filters: Vec::new(),
            log: if log { log_of(folder) } else { String::new() },
        };
        Self {
            order: (tactic == Tactic::MethodInvoke).then(order),
            ..Self::default()
        }
    }

    /// What a command's environment must say for it to count from its start on: methods whose names have one of these prefixes, or
    /// all.
    pub fn environment(&mut self, prefixes: Vec<String>) -> Vec<(&'static str, String)> {
        let Some(order) = &self.order else {
            return Vec::new();
        };
        self.at_start = prefixes;
        // Empty variables are set, too: varid may have inherited others.
        vec![
            (TACTIC, Tactic::MethodInvoke.name().to_owned()),
            (LOG, order.log.clone()),
            (FILTERS, self.at_start.join(SEPARATOR)),
        ]
    }

    /// Whether a VM has not said yet where it counts. It may not live long.
    pub fn awaits(&self, tracked: &Tracked) -> bool {
        let counts = |counting: &Counting| counting.file.is_some() || counting.control.is_none();
        self.order.is_some() && !self.vms.get(&tracked.pid()).is_some_and(counts)
    }

    /// Starts the counting of new VMs, and finds their files of counts.
    pub fn start_counting(&mut self, tracked: &ById<Pid, Tracked>) {
        let Some(order) = &self.order else {
            return;
        };
        for (pid, tracked) in tracked {
            let vm = tracked.managed.vm();
            let Some(vm) = vm.filter(|_| tracked.is_profiled()) else {
                continue;
            };
            let agent = vm.agent(*pid);
            let Agent::Controlled {
                control: page,
                calls,
            } = agent
            else {
                let has_agent = agent != Agent::Absent;
                self.without_control.insert(*pid, has_agent);
                continue;
            };
            self.without_control.remove(pid);
            let notes = &mut self.notes;
            let filters = &self.filters;
            let counting = self.vms.entry(*pid).or_insert_with(|| {
                // A number that no other session has, nor had an earlier counting of this one.
                let session = monotonic_ns().get().max(1);
                let order = Order {
                    session,
                    filters: filters.get(pid).cloned().unwrap_or_default(),
                    ..order.clone()
                };
                let control = take(*pid, &page, &order, notes);
                Counting::new(session, vm.title(), control)
            });
            if counting.file.is_none()
                && counting.control.is_some()
                && let Some(calls) = calls
            {
                counting.file = open_calls(*pid, &calls)
                    .inspect_err(|error| tracing::warn!("{error}"))
                    .ok();
            }
        }
    }

    /// From now on a process only counts methods whose names have one of these prefixes; none: all methods.
    pub fn restrict(&mut self, pid: Pid, prefixes: Vec<String>) {
        let Some(order) = &self.order else {
            return;
        };
        if self.filters.get(&pid).map_or(&[][..], Vec::as_slice) == prefixes {
            return;
        }
        self.filters.insert(pid, prefixes.clone());
        let Some(counting) = self.vms.get_mut(&pid) else {
            return;
        };
        let order = Order {
            session: counting.session,
            filters: prefixes,
            ..order.clone()
        };
        let control = counting.control.as_mut();
        if let Some(Err(error)) = control.map(|control| control.set(&order)) {
            tracing::warn!("{error}");
        }
    }

    /// Reads what was counted. New methods get addresses, which have names from a time on: that of the latest record. They are added to
    /// contexts.data.
    pub fn read(
        &mut self,
        tracked: &mut ById<Pid, Tracked>,
        recorder: &mut Recorder,
        time: MonotonicNs,
    ) -> Result<(), RecorderError> {
        if self.order.is_none() {
            return Ok(());
        }
        let mut named = Ok(());
        for (pid, counting) in &mut self.vms {
            counting.read();
            if let Some(tracked) = tracked.get_mut(pid) {
                named = named.and(counting.name(tracked, recorder, time));
            }
        }
        let added = self.contexts.add_methods(&mut self.vms, recorder);
        let gone = |pid: &Pid| !tracked.contains_key(pid);
        let gone: Vec<Pid> = self.vms.keys().copied().filter(gone).collect();
        for pid in gone {
            self.forget(pid);
        }
        named.and(added)
    }

    /// A process leaves the session. What it has counted is read and named before.
    pub fn read_last(
        &mut self,
        tracked: &mut Tracked,
        recorder: &mut Recorder,
        time: MonotonicNs,
    ) -> Result<(), RecorderError> {
        let pid = tracked.pid();
        let named = self.vms.get_mut(&pid).map_or(Ok(()), |counting| {
            counting.read();
            counting.name(tracked, recorder, time)
        });
        self.forget(pid);
        named
    }

    /// A process has ended, or executes another program. Its counts are written next.
    pub fn forget(&mut self, pid: Pid) {
        let filters = self.filters.remove(&pid).unwrap_or_default();
        if let Some(mut counting) = self.vms.remove(&pid) {
            counting.read();
            if counting.counted.session == 0
                && filters != self.at_start
                && !counting.counted.calls.is_empty()
            {
                let methods = if self.at_start.is_empty() {
                    "all its methods"
                } else {
                    "the methods that were wanted when the command started"
                };
                self.notes.add(format!(
                    "the calls of process {pid} are of {methods}: it ended before its VM read which are wanted"
                ), FURTHER);
            }
            self.missing.add(counting.missing());
            if counting.file.is_none() && counting.control.is_some() {
                self.notes.add(format!(
                    "the calls of process {pid} are not counted: its VM had not said where it counts when it, or the session, ended, or not so that it could be read"
                ), FURTHER);
            }
            if counting.counted.refused > 0 {
                self.notes.add(format!(
                    "the calls of process {pid} are not all counted: its VM could not do what it was told"
                ), FURTHER);
            }
            // The VM stops counting.
            counting.control = None;
            self.contexts.end(pid, counting);
        }
    }

    /// Writes the counts that have changed, if that is due; at the `last` call VMs stop counting.
    pub fn save(&mut self, recorder: &mut Recorder, last: bool) -> Result<(), RecorderError> {
        let due = self
            .saved
            .is_none_or(|saved| saved.elapsed() >= SAVE_INTERVAL);
        if self.order.is_none() || !(due || last) {
            return Ok(());
        }
        self.saved = Some(Instant::now());
        if last {
            let pids: Vec<Pid> = self.vms.keys().copied().collect();
            pids.into_iter().for_each(|pid| self.forget(pid));
            self.add_notes(recorder);
        }
        let written = self.contexts.write(&mut self.vms, recorder, last);
        if last {
            self.order = None;
        }
        written
    }

    /// Adds notes to the recording: why calls are not counted.
    fn add_notes(&mut self, recorder: &mut Recorder) {
        for (pid, has_agent) in &self.without_control {
            self.notes.add(
                match has_agent {
                    true => format!("process {pid}: this build of its VM cannot count calls"),
                    false => format!(
                        "process {pid} has no part of varid's in its VM, or ended before that was seen: its calls are not counted"
                    ),
                },
                FURTHER,
            );
        }
        let notes = &mut recorder.writer().manifest_mut().notes;
        notes.extend(self.notes.take());
        notes.extend(self.missing.sentences());
    }
}

fn take(pid: Pid, page: &VmFile, order: &Order, notes: &mut Notes) -> Option<ControlPage> {
    let control = take_control(pid, page).and_then(|mut control| {
        control.set(order)?;
        Ok(control)
    });
    control
        .inspect_err(|error| {
            let note = format!("the calls of process {pid} are not counted: {error}");
            tracing::warn!("{note}");
            notes.add(note, FURTHER);
        })
        .ok()
}

fn log_of(folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.join(CALLS_LOG).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_that_refused_is_named() {
        let mut calls = Calls::default();
        for (pid, refused) in [(1, 0), (2, 3)].map(|(pid, refused)| (Pid::new(pid), refused)) {
            let mut counting = Counting::new(1, String::new(), None);
            counting.counted.refused = refused;
            calls.vms.insert(pid, counting);
            calls.forget(pid);
        }
        let notes = calls.notes.take();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("process 2 "), "{notes:?}");
    }
}
