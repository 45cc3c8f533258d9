//! Collects the calls that VMs count for each method (the tactic method-invoke).
//!
//! A VM counts while the session holds its control page. The session reads the counts at every flush, and a last time
//! when the VM or the session has ended: the file of counts outlives the process. It writes them to contexts.data.

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

/// The interval at which a running session writes the counts.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);
/// The last note if the number of processes with missing counts exceeds the number of notes.
const FURTHER: &str = "the calls of further processes are not, or not all, counted either";
/// The environment variable that makes a VM count from its start.
const TACTIC: &str = "VARID_TACTIC";
const LOG: &str = "VARID_CALL_LOG";
const FILTERS: &str = "VARID_CALL_FILTERS";
/// The separator of filters in the environment. No method pattern contains it.
const SEPARATOR: &str = ";";

/// The counting of calls in a session.
#[derive(Debug, Default)]
pub struct Calls {
    /// The order for VMs, or None if they do not count.
    order: Option<Order>,
    vms: HashMap<Pid, Counting>,
    /// The name prefixes of the methods that a process counts. A process without an entry counts all methods.
    filters: HashMap<Pid, Vec<String>>,
    /// The name prefixes in the environment of the session's command.
    at_start: Vec<String>,
    /// Processes whose VMs have no known control page, and whether varid's code is in the VM.
    without_control: BTreeMap<Pid, bool>,
    contexts: CallContexts,
    missing: MissingEvents,
    /// The reasons why the calls of a process are not counted.
    notes: Notes,
    saved: Option<Instant>,
}

impl Calls {
    /// Makes the counting of a session with this folder. With `log`, VMs also log a line for each event.
    pub fn new(tactic: Tactic, log: bool, folder: &Path) -> Self {
        let order = || Order {
            tactic: abi::TACTIC_METHOD_INVOKE,
            // Each VM has its own session number.
            session: 0,
            filters: Vec::new(),
            log: if log { log_of(folder) } else { String::new() },
        };
        Self {
            order: (tactic == Tactic::MethodInvoke).then(order),
            ..Self::default()
        }
    }

    /// Returns the environment variables that make a command count from its start. It counts methods whose names have
    /// one of these prefixes, or all methods if there are none.
    pub fn environment(&mut self, prefixes: Vec<String>) -> Vec<(&'static str, String)> {
        let Some(order) = &self.order else {
            return Vec::new();
        };
        self.at_start = prefixes;
        // Empty variables are set as well because varid may have inherited others.
        vec![
            (TACTIC, Tactic::MethodInvoke.name().to_owned()),
            (LOG, order.log.clone()),
            (FILTERS, self.at_start.join(SEPARATOR)),
        ]
    }

    /// Returns true if a VM has not yet reported where it counts. The VM may be short-lived.
    pub fn awaits(&self, tracked: &Tracked) -> bool {
        let counts = |counting: &Counting| counting.file.is_some() || counting.control.is_none();
        self.order.is_some() && !self.vms.get(&tracked.pid()).is_some_and(counts)
    }

    /// Starts counting in new VMs, and finds their files of counts.
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
                // A unique number: it differs from those of other sessions and from those of earlier counting in this
                // one.
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

    /// Restricts a process to methods whose names have one of these prefixes. Without prefixes it counts all methods.
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

    /// Reads the counts. New methods get addresses, with names from the time of the latest record on. They are added to
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
        let named = named.and(recorder.write_remap_names());
        let added = self.contexts.add_methods(&mut self.vms, recorder);
        let gone = |pid: &Pid| !tracked.contains_key(pid);
        let gone: Vec<Pid> = self.vms.keys().copied().filter(gone).collect();
        for pid in gone {
            self.forget(pid);
        }
        named.and(added)
    }

    /// Reads and names the last counts of a process that leaves the session.
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
        named.and(recorder.write_remap_names())
    }

    /// Handles the exit or exec of a process. Its counts are written next.
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
            // This stops counting in the VM.
            counting.control = None;
            self.contexts.end(pid, counting);
        }
    }

    /// Writes the changed counts, if the interval has passed. The `last` call also stops counting in the VMs.
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

    /// Adds notes with the reasons for missing calls to the recording.
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
