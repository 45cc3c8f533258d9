//! Turns the records of waits into samples.
//!
//! The shim writes a record when a thread leaves its CPU, and the duration of the wait when the thread runs again. Only the last record of
//! each thread is used.

use super::trace_callers::TraceCallers;
use crate::decode::{RingEvent, SamplePool, Sampled, Stamped};
use crate::event::thread_time_period;
use crate::groups::indexed_events;
use crate::{SamplerError, SamplerOptions, monotonic_ns};
use std::collections::{HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;
use varid_model::{Address, ById, Machine, Period, Pid, Regs, Tid};
use varid_shim::{CapturedSample, OffCpuShim, Target, Wait, WaitKind, Walker, flags, target_flags};

/// The maximum total size of the stacks of waiting threads, in bytes. Further records lose their stacks.
const MAX_WAITING: usize = 1 << 26;

/// The loaded off-CPU shim, and the threads that wait.
#[derive(Debug)]
pub struct OffCpu {
    shim: OffCpuShim,
    waits: Waits,
    /// Processes whose threads were checked for blocked ones.
    seen: HashSet<Pid>,
    is_enabled: bool,
}

/// The records of threads that still wait.
#[derive(Debug, Default)]
struct Waits {
    /// The event of each kind of wait, by its index among all events.
    events: [Option<usize>; 2],
    /// The last record, by thread.
    records: ById<Tid, Box<Sampled>>,
    /// The total size of their stacks, in bytes.
    stacks: usize,
    /// The kernel functions that call the shim.
    callers: TraceCallers,
    /// Nanoseconds without a sample: the waits of threads that ended before one of their waits was captured.
    without_sample: u64,
}

impl OffCpu {
    /// Loads the shim if one of the events measures waits.
    pub fn load(options: &SamplerOptions) -> Result<Option<Self>, SamplerError> {
        let of_kind = |kind: WaitKind| {
            let mut events = indexed_events(&options.groups);
            events.find(|one| one.event.time.is_some_and(|time| time.has(kind)))
        };
        let found = WaitKind::ALL.map(of_kind);
        let periods = found.iter().flatten();
        let periods = periods.map(|one| thread_time_period(one.event.rate));
        let Some(period) = periods.min() else {
            return Ok(None);
        };
        Ok(Some(Self {
            shim: OffCpuShim::load(options.ring_pages, period)?,
            waits: Waits {
                events: found.map(|one| one.map(|one| one.index)),
                callers: TraceCallers::running(),
                ..Waits::default()
            },
            seen: HashSet::new(),
            is_enabled: false,
        }))
    }

    /// Starts recording waits.
    pub fn enable(&mut self) -> Result<(), SamplerError> {
        self.shim.attach()?;
        self.is_enabled = true;
        Ok(())
    }

    /// Stops recording waits.
    pub fn disable(&mut self) -> Result<(), SamplerError> {
        self.is_enabled = false;
        Ok(self.shim.detach()?)
    }

    /// The descriptor that is readable when the shim's ring fills up.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.shim.descriptor()
    }

    /// Takes the samples of waits that have ended.
    pub fn drain(&mut self, pending: &mut Vec<Stamped>, spare: &mut SamplePool) {
        let waits = &mut self.waits;
        self.shim.drain(|bytes| match Wait::decode(bytes) {
            Some(wait) => pending.extend(waits.end(&wait)),
            None => pending.extend(waits.begin(spare.sample(0, bytes), spare)),
        });
    }

    /// Takes the samples of threads that still wait, after recording has stopped.
    pub fn finish(&mut self, pending: &mut Vec<Stamped>) {
        for wait in self.shim.unfinished(monotonic_ns()) {
            pending.extend(self.waits.end(&wait));
        }
    }

    /// Returns notes for the user about the samples.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Ok((waits, counters, threads)) = self.shim.counts() {
            let captured = counters.samples.saturating_sub(counters.no_space);
            if captured < waits {
                notes.push(format!(
                    "threads waited {waits} times, and the stacks of {captured} waits were captured: the others count for those of the same thread"
                ));
            }
            if counters.no_space > 0 {
                notes.push(format!(
                    "{} times there was no room for a wait's stacks, or for what a thread that ended had waited last: --ring-pages makes more",
                    counters.no_space
                ));
            }
            if threads > 0 {
                notes.push(format!(
                    "{threads} times a thread's waits were not recorded: there were too many threads at once"
                ));
            }
        }
        if self.waits.without_sample > 0 {
            notes.push(format!(
                "{:?} of waits have no sample: no stack of their threads was captured",
                Duration::from_nanos(self.waits.without_sample)
            ));
        }
        notes
    }

    /// Returns the shim's walker.
    pub fn walker(&self) -> Walker {
        self.shim.walker()
    }

    /// Sets how a process is sampled.
    pub fn set_target(&mut self, pid: Pid, target: &Target) -> Result<(), SamplerError> {
        self.shim.set_target(pid.get(), target)?;
        let is_profiled = target.flags & target_flags::IGNORE == 0;
        if is_profiled && self.is_enabled && self.seen.insert(pid) {
            self.add_blocked(pid)?;
        }
        Ok(())
    }

    /// Removes the target of a process.
    pub fn remove_target(&mut self, pid: Pid) -> Result<(), SamplerError> {
        self.seen.remove(&pid);
        Ok(self.shim.remove_target(pid.get())?)
    }

    /// Sets how processes without a target of their own are sampled.
    pub fn set_default_target(&mut self, target: &Target) -> Result<(), SamplerError> {
        Ok(self.shim.admit_everyone(target)?)
    }

    /// Adds the threads that are blocked already. The shim has not seen them leave their CPUs.
    fn add_blocked(&mut self, pid: Pid) -> Result<(), SamplerError> {
        for (tid, ip) in blocked_threads(pid) {
            self.shim.add_blocked(pid, tid, ip, monotonic_ns())?;
        }
        Ok(())
    }
}

impl Waits {
    /// Keeps the record of a thread that has left its CPU. Returns a malformed record, which is handed over at once.
    fn begin(&mut self, stamped: Stamped, spare: &mut SamplePool) -> Option<Stamped> {
        let RingEvent::Sample(mut sampled) = stamped.event else {
            return Some(stamped);
        };
        if let Some(before) = self.take(sampled.record.tid) {
            spare.put(before);
        }
        let record = &mut sampled.record;
        if self.stacks.saturating_add(record.stack_bytes()) > MAX_WAITING {
            record.drop_stacks();
        }
        self.stacks = self.stacks.saturating_add(record.stack_bytes());
        self.records.insert(record.tid, sampled);
        None
    }

    /// Removes and returns the last record of a thread.
    fn take(&mut self, tid: Tid) -> Option<Box<Sampled>> {
        let taken = self.records.remove(&tid)?;
        self.stacks = self.stacks.saturating_sub(taken.record.stack_bytes());
        Some(taken)
    }

    /// Returns the sample of the waits of a thread that runs again or has ended.
    fn end(&mut self, wait: &Wait) -> Option<Stamped> {
        let captured = match wait.captured || wait.ends {
            // The thread id may be reused: the end of an earlier thread in another process may have been missed.
            true => self
                .take(wait.tid)
                .filter(|captured| captured.record.pid == wait.pid),
            false => None,
        };
        let mut parts: Vec<(usize, u64)> = Vec::new();
        for (event, ns) in self.events.into_iter().zip(wait.ns) {
            let Some(event) = event.filter(|_| ns > 0) else {
                continue;
            };
            match parts.last_mut() {
                Some((last, sum)) if *last == event => *sum = sum.saturating_add(ns),
                _ => parts.push((event, ns)),
            }
        }
        let mut parts = parts.into_iter();
        let (event, period) = parts.next()?;
        let mut sampled = match captured {
            Some(captured) => captured,
            None if wait.ip.get() != 0 => leaf_of(wait),
            None => {
                let rest = parts.fold(period, |sum, (_, ns)| sum.saturating_add(ns));
                self.without_sample = self.without_sample.saturating_add(rest);
                return None;
            }
        };
        let record = &mut sampled.record;
        self.callers.remove_from(&mut record.kernel);
        (record.time, record.cpu) = (wait.time, wait.cpu);
        record.period = Period::new(period);
        if let Some(leaf) = record.kernel.first() {
            record.ip = *leaf;
        }
        sampled.event = event;
        sampled.read.clear();
        sampled.read.extend(parts);
        Some(Stamped {
            time: wait.time,
            event: RingEvent::Sample(sampled),
        })
    }
}

/// Makes the sample of a wait whose stacks were not captured. Its only frame is where the thread left user code.
fn leaf_of(wait: &Wait) -> Box<Sampled> {
    let mut regs = Regs::unknown(Machine::NATIVE);
    regs.set(Machine::NATIVE.ip(), Some(wait.ip.get()));
    let record = CapturedSample {
        time: wait.time,
        pid: wait.pid,
        tid: wait.tid,
        flags: flags::LEAF_ONLY,
        ip: wait.ip,
        regs,
        ..CapturedSample::default()
    };
    Box::new(Sampled {
        record,
        ..Sampled::default()
    })
}

/// Returns the blocked threads of a process, and where each has left user code.
fn blocked_threads(pid: Pid) -> HashMap<Tid, Address> {
    let tasks = Path::new("/proc").join(pid.to_string()).join("task");
    let entries = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
    let threads = entries.filter_map(|entry| {
        let tid = entry.file_name().to_str()?.parse().ok()?;
        // For a thread that is not blocked, the file contains "running".
        let call = std::fs::read_to_string(entry.path().join("syscall")).ok()?;
        Some((Tid::new(tid), left_at(&call)?))
    });
    threads.collect()
}

/// Returns the address after the system call, which is the last word of `/proc/PID/syscall`. A kernel thread has none.
fn left_at(call: &str) -> Option<Address> {
    let pc = call.trim().rsplit(' ').next()?.strip_prefix("0x")?;
    let pc = u64::from_str_radix(pc, 16).ok();
    pc.filter(|pc| *pc != 0).map(Address::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::MonotonicNs;

    const PID: Pid = Pid::new(1);
    const KALLSYMS: &str = "ffff00 T bpf_trace_run4\nffff10 t __schedule\n";

    fn waits(events: [Option<usize>; 2]) -> Waits {
        Waits {
            events,
            callers: TraceCallers::in_symbols(KALLSYMS),
            ..Waits::default()
        }
    }

    fn captured(tid: u32, ip: u64) -> Stamped {
        let mut sampled = Box::<Sampled>::default();
        (sampled.record.pid, sampled.record.tid) = (PID, Tid::new(tid));
        sampled.record.ip = Address::new(ip);
        sampled.record.kernel = [1, 0xffff04, 0xffff14].map(Address::new).to_vec();
        Stamped {
            time: MonotonicNs::new(1),
            event: RingEvent::Sample(sampled),
        }
    }

    fn wait(tid: u32, captured: bool, ns: [u64; 2]) -> Wait {
        Wait {
            time: MonotonicNs::new(100),
            pid: PID,
            tid: Tid::new(tid),
            cpu: 3,
            captured,
            ends: false,
            ip: Address::new(0x5000),
            ns,
        }
    }

    fn sample(stamped: Option<Stamped>) -> Sampled {
        match stamped.map(|stamped| stamped.event) {
            Some(RingEvent::Sample(sampled)) => *sampled,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wait_has_the_stacks_of_where_it_began_and_the_time_of_its_end() {
        let (mut waits, mut spare) = (waits([Some(4), Some(5)]), SamplePool::default());
        assert!(waits.begin(captured(7, 0x10), &mut spare).is_none());
        assert!(waits.begin(captured(8, 0x20), &mut spare).is_none());
        let found = sample(waits.end(&wait(7, true, [30, 12])));
        assert_eq!((found.event, found.read.as_slice()), (4, &[(5, 12)][..]));
        assert_eq!(found.record.period, Period::new(30));
        assert_eq!((found.record.time.get(), found.record.cpu), (100, 3));
        // The frames of the shim's own callers are removed.
        assert_eq!(found.record.kernel, [Address::new(0xffff14)]);
        assert_eq!(found.record.ip, Address::new(0xffff14));
        let runnable = sample(waits.end(&wait(8, true, [0, 12])));
        assert_eq!((runnable.event, runnable.read.len()), (5, 0));
    }

    #[test]
    fn one_event_has_the_sum_of_both_waits_and_no_event_no_sample() {
        let mut spare = SamplePool::default();
        let mut wall = waits([Some(0), Some(0)]);
        wall.begin(captured(7, 1), &mut spare);
        let found = sample(wall.end(&wait(7, true, [30, 12])));
        assert_eq!((found.record.period.get(), found.read.len()), (42, 0));
        let mut blocked = waits([Some(0), None]);
        blocked.begin(captured(7, 1), &mut spare);
        assert!(blocked.end(&wait(7, true, [0, 12])).is_none());
    }

    #[test]
    fn a_wait_that_was_not_captured_has_its_leaf_and_one_without_leaf_is_counted() {
        let (mut waits, mut spare) = (waits([Some(0), None]), SamplePool::default());
        waits.begin(captured(7, 1), &mut spare);
        let found = sample(waits.end(&wait(7, false, [30, 0])));
        assert_eq!(found.record.regs.ip(), Some(0x5000));
        assert!(found.record.has(flags::LEAF_ONLY));
        // The record of an earlier wait stays for a later one.
        assert_eq!(waits.records.len(), 1);
        let nowhere = Wait {
            ip: Address::new(0),
            ..wait(9, true, [30, 0])
        };
        assert!(waits.end(&nowhere).is_none());
        assert_eq!(waits.without_sample, 30);
    }

    #[test]
    fn a_thread_s_wait_has_no_stacks_of_another_process() {
        let (mut waits, mut spare) = (waits([Some(0), None]), SamplePool::default());
        let of_another = |tid| Wait {
            pid: Pid::new(2),
            ..wait(tid, true, [30, 0])
        };
        waits.begin(captured(7, 1), &mut spare);
        let found = sample(waits.end(&of_another(7)));
        assert_eq!(found.record.pid, Pid::new(2));
        assert!(found.record.has(flags::LEAF_ONLY));
    }

    #[test]
    fn stacks_of_waiting_threads_have_a_bound() {
        let (mut waits, mut spare) = (waits([Some(0), None]), SamplePool::default());
        let begin = |waits: &mut Waits, spare: &mut SamplePool, tid| {
            let mut stamped = captured(tid, 1);
            if let RingEvent::Sample(sampled) = &mut stamped.event {
                sampled.record.stack = vec![0; MAX_WAITING / 2];
            }
            waits.begin(stamped, spare);
        };
        for tid in [7, 8, 9] {
            begin(&mut waits, &mut spare, tid);
        }
        let beyond = sample(waits.end(&wait(9, true, [30, 0])));
        assert!(beyond.record.stack.is_empty() && beyond.record.has(flags::STACK_TRUNCATED));
        // A record replaces its thread's previous one, whose memory is available again.
        begin(&mut waits, &mut spare, 8);
        assert!(
            !waits.records[&Tid::new(8)]
                .record
                .has(flags::STACK_TRUNCATED)
        );
        waits.end(&wait(8, true, [30, 0]));
        begin(&mut waits, &mut spare, 10);
        let within = sample(waits.end(&wait(10, true, [30, 0])));
        assert_eq!(within.record.stack.len(), MAX_WAITING / 2);
    }

    #[test]
    fn a_blocked_thread_says_where_it_has_left_user_code() {
        let blocked = "230 0x0 0x0 0x7ffe 0x7ffe 0x0 0x0 0x7ffe8 0x7f545\n";
        assert_eq!(left_at(blocked), Some(Address::new(0x7f545)));
        assert_eq!(left_at("-1 0x7ffe8 0x5000\n"), Some(Address::new(0x5000)));
        assert_eq!(left_at("running\n"), None);
        assert_eq!(left_at("-1 0x0 0x0\n"), None);
        assert_eq!(left_at(""), None);
    }
}
