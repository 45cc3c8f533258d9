//! Collects the calls of each method that VMs count (the tactic method-invoke).
//!
//! A VM counts while the session holds its control page. Its counts are read at every flush, and once more when the VM or the
//! session has ended: the file of counts outlives the process.

use super::tracked::Tracked;
use crate::notes::Notes;
use crate::recorder::{Recorder, RecorderError};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};
use varid_model::{Address, ById, MonotonicNs, Pid};
use varid_process::{open_calls, take_control};
use varid_recording::{CALLS_LOG, CallCount, Tactic};
use varid_sampler::monotonic_ns;
use varid_tunnel::abi::{self, Call, VmFile};
use varid_tunnel::calls::{CallsFile, Counted};
use varid_tunnel::control::{ControlPage, Order};
use varid_vm::seam::Agent;
use varid_vm::{ManagedProcess, Method};

/// The interval at which a running session writes the counts.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);
/// The last note if there are more processes with uncounted calls than notes are written.
const FURTHER: &str = "the calls of further processes are not, or not all, counted either";
/// The environment variables by which a VM counts from its start.
const TACTIC: &str = "VARID_TACTIC";
const LOG: &str = "VARID_CALL_LOG";
const FILTERS: &str = "VARID_CALL_FILTERS";
/// The separator of filters in the environment. No pattern of methods contains it.
const SEPARATOR: &str = ";";

/// The counts of all VMs.
#[derive(Debug, Default)]
pub struct Calls {
    /// The order for VMs, or None if they do not count.
    order: Option<Order>,
    vms: HashMap<Pid, Counting>,
    /// The prefixes of the methods that a process counts. A process without an entry counts all methods.
    filters: HashMap<Pid, Vec<String>>,
    /// The same, in the environment of the session's command.
    at_start: Vec<String>,
    /// Processes whose VMs have no control page as far as known, and whether varid's agent is in the VM.
    without_control: BTreeMap<Pid, bool>,
    /// The counts of processes that have ended or executed another program.
    ended: Vec<CallCount>,
    missing: BTreeMap<Missing, u64>,
    /// The reasons why calls of processes are not counted.
    notes: Notes,
    saved: Option<Instant>,
}

/// The reason why events are missing in the counts or the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    Room,
    Log,
    Name,
}

/// A VM that counts.
#[derive(Debug)]
struct Counting {
    /// The number of the session in its order. Another number resets its counts.
    session: u64,
    /// None if another profiler holds it or it cannot be opened, of which there is a note.
    control: Option<ControlPage>,
    file: Option<CallsFile>,
    counted: Counted,
    /// For each entry of the counts: the address of its method in samples, and the time from which on it has that address.
    addresses: Vec<Option<(MonotonicNs, Address)>>,
}

impl Calls {
    /// Makes the counting for a session in this folder. `log`: also log a line for each event.
    pub fn new(tactic: Tactic, log: bool, folder: &Path) -> Self {
        let order = || Order {
            tactic: abi::TACTIC_METHOD_INVOKE,
            // Set for each VM.
            session: 0,
            filters: Vec::new(),
            log: if log { log_of(folder) } else { String::new() },
        };
        Self {
            order: (tactic == Tactic::MethodInvoke).then(order),
            ..Self::default()
        }
    }

    /// Returns the environment by which a command counts from its start: the methods whose names have one of these prefixes, or
    /// all.
    pub fn environment(&mut self, prefixes: Vec<String>) -> Vec<(&'static str, String)> {
        let Some(order) = &self.order else {
            return Vec::new();
        };
        self.at_start = prefixes;
        // Empty variables are set, too, because varid may have inherited other values.
        vec![
            (TACTIC, Tactic::MethodInvoke.name().to_owned()),
            (LOG, order.log.clone()),
            (FILTERS, self.at_start.join(SEPARATOR)),
        ]
    }

    /// Returns true if a VM has not published its file of counts yet. It may end soon.
    pub fn awaits(&self, tracked: &Tracked) -> bool {
        let counts = |counting: &Counting| counting.file.is_some() || counting.control.is_none();
        self.order.is_some() && !self.vms.get(&tracked.pid()).is_some_and(counts)
    }

    /// Starts the counting of new VMs, and opens their files of counts.
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
                // A number that no other session has, nor an earlier count of this one.
                let session = monotonic_ns().get().max(1);
                let order = Order {
                    session,
                    filters: filters.get(pid).cloned().unwrap_or_default(),
                    ..order.clone()
                };
                Counting {
                    session,
                    control: take(*pid, &page, &order, notes),
                    file: None,
                    counted: Counted::default(),
                    addresses: Vec::new(),
                }
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

    /// Restricts a process to methods whose names have one of these prefixes, or to all if there are none.
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

    /// Reads the counts. New methods get addresses, which have names from the time of the latest record on.
    pub fn read(
        &mut self,
        tracked: &mut ById<Pid, Tracked>,
        recorder: &mut Recorder,
        time: MonotonicNs,
    ) -> Result<(), RecorderError> {
        let mut named = Ok(());
        for (pid, counting) in &mut self.vms {
            counting.read();
            if let Some(tracked) = tracked.get_mut(pid) {
                named = named.and(counting.name(tracked, recorder, time));
            }
        }
        let gone = |pid: &Pid| !tracked.contains_key(pid);
        let gone: Vec<Pid> = self.vms.keys().copied().filter(gone).collect();
        for pid in gone {
            self.forget(pid);
        }
        named
    }

    /// Reads and names the counts of a process that leaves the session.
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

    /// Keeps the counts of a process that has ended or executes another program.
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
            self.ended.extend(counting.counts(pid));
            for (missing, events) in counting.missing() {
                let sum = self.missing.entry(missing).or_default();
                *sum = sum.saturating_add(events);
            }
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
        }
    }

    /// Writes the counts if due. At the `last` call VMs stop counting.
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
        let live = self.vms.iter().flat_map(|(pid, vm)| vm.counts(*pid));
        let counts: Vec<CallCount> = self.ended.iter().copied().chain(live).collect();
        Ok(recorder.writer().save_calls(&counts)?)
    }

    /// Adds the reasons for uncounted calls to the recording's notes.
    fn add_notes(&mut self, recorder: &mut Recorder) {
        let missing = self.missing.iter().filter(|(_, events)| **events > 0);
        let sentences = missing.map(|(missing, events)| match missing {
            Missing::Room => format!(
                "{events} calls, returns and unwinds are not counted: a VM counts {} methods, it called more",
                abi::MAX_CALLS
            ),
            Missing::Log => format!(
                "{events} calls, returns and unwinds are not in the log: the app cannot write it"
            ),
            Missing::Name => format!(
                "{events} calls, returns and unwinds are of methods that could not be named"
            ),
        });
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
        notes.extend(self.notes.take().into_iter().chain(sentences));
    }
}

impl Counting {
    /// Reads the counts, if they belong to this session.
    fn read(&mut self) {
        match self.file.as_ref().map(CallsFile::read) {
            // 0: the VM counts from its start, and has not read the session's number yet.
            Some(Ok(counted)) if [self.session, 0].contains(&counted.session) => {
                self.counted = counted;
            }
            Some(Err(error)) => tracing::warn!("{error}"),
            Some(Ok(_)) | None => {}
        }
    }

    /// Assigns addresses to new entries, and writes the names of these addresses.
    fn name(
        &mut self,
        tracked: &mut Tracked,
        recorder: &mut Recorder,
        time: MonotonicNs,
    ) -> Result<(), RecorderError> {
        let mut named = Ok(());
        let known = self.addresses.len();
        for call in self.counted.calls.iter().skip(known) {
            let address = address_of(call, &mut tracked.managed, recorder);
            if let Some(address) = address {
                let (managed, written) = (&mut tracked.managed, &mut tracked.written);
                named = named.and(recorder.name(address, time, managed, written));
            }
            self.addresses.push(address.map(|address| (time, address)));
        }
        named
    }

    fn counts(&self, pid: Pid) -> impl Iterator<Item = CallCount> {
        let entries = self.counted.calls.iter().zip(&self.addresses);
        entries.filter_map(move |(call, address)| {
            let (time, address) = (*address)?;
            let counted = events(call) > 0 && call.flags & abi::CALL_LEFT_OUT == 0;
            counted.then_some(CallCount {
                pid,
                address,
                time,
                invokes: call.invokes,
                returns: call.returns,
                unwinds: call.unwinds,
            })
        })
    }

    fn missing(&self) -> [(Missing, u64); 3] {
        let unnamed = self.counted.calls.iter().enumerate();
        let unnamed = unnamed
            .filter(|(index, _)| self.addresses.get(*index).is_none_or(Option::is_none))
            .fold(0u64, |sum, (_, call)| sum.saturating_add(events(call)));
        [
            (Missing::Room, self.counted.uncounted),
            (Missing::Log, self.counted.unlogged),
            (Missing::Name, unnamed),
        ]
    }
}

/// The number of a method's calls, returns and unwinds.
fn events(call: &Call) -> u64 {
    let ends = call.returns.saturating_add(call.unwinds);
    call.invokes.saturating_add(ends)
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

/// Returns the address of a method in samples of its process.
fn address_of(
    call: &Call,
    managed: &mut ManagedProcess,
    recorder: &mut Recorder,
) -> Option<Address> {
    let method = managed.counted_method(call);
    match &method {
        Method::Known {
            code: Some(code), ..
        } => {
            let space = &mut managed.process.space;
            Some(Address::new(match call.index {
                // Any of the methods that share the code.
                abi::NO_INDEX => code.start,
                _ => method.own_address(code.start, space),
            }))
        }
        Method::Known {
            image,
            index,
            code: None,
        } => recorder.remap.slot(image, *index).map(Address::new),
        Method::Runtime | Method::Unknown | Method::Gone => None,
    }
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
            let counting = Counting {
                session: 1,
                control: None,
                file: None,
                counted: Counted {
                    refused,
                    ..Counted::default()
                },
                addresses: Vec::new(),
            };
            calls.vms.insert(pid, counting);
            calls.forget(pid);
        }
        let notes = calls.notes.take();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("process 2 "), "{notes:?}");
    }
}
