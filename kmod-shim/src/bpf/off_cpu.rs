//! Measures how long threads wait off their CPUs: the shim on the scheduler's tracepoints.

use super::object::{Object, object};
use super::{BpfError, Counters, Hook, Shim, Variant, load, map_error};
use crate::abi::{COUNTER_NO_THREAD, COUNTER_WAITS, RawWait, RawWaitEnd, wait_flags};
use crate::target::Target;
use aya::maps::{HashMap, MapData};
use aya::programs::{ProgramError, RawTracePoint};
use std::os::fd::BorrowedFd;
use varid_model::{Address, MonotonicNs, Pid, Tid};

/// The programs.
pub(super) static OBJECT: Object = object!("off_cpu");

/// The variant with bpf_loop, then the one without.
pub(super) static VARIANTS: [Variant; 2] = [
    Variant {
        entry: "varid_switch",
        any: "varid_switch_any",
    },
    Variant {
        entry: "varid_switch_no_loop",
        any: "varid_switch_any_no_loop",
    },
];

/// The other programs, and their tracepoints.
const OTHERS: [(&str, &str); 2] = [
    ("varid_wakeup", "sched_wakeup"),
    ("varid_wakeup_new", "sched_wakeup_new"),
];
const SWITCH: &str = "sched_switch";

/// The kind of a wait: what the thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// An event that wakes it: a timeout, a lock, a file.
    Blocked,
    /// A CPU.
    Runnable,
}

impl WaitKind {
    /// Both, in the order of [`Wait::ns`].
    pub const ALL: [Self; 2] = [Self::Blocked, Self::Runnable];

    /// The name of the wait's event in `-e`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocked => "off-cpu",
            Self::Runnable => "runnable",
        }
    }
}

/// The waits of a thread that a sample stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The end of the last of them.
    pub time: MonotonicNs,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The CPU on which it runs again.
    pub cpu: u32,
    /// True if the thread's last record has the stacks of the wait.
    pub captured: bool,
    /// True if the thread has ended.
    pub ends: bool,
    /// Where the thread left user code, or 0 if unknown.
    pub ip: Address,
    /// Nanoseconds of each [`WaitKind`].
    pub ns: [u64; 2],
}

impl Wait {
    /// Decodes the shim's record of a wait. Returns None for the record of a sample.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_first_chunk::<{ size_of::<RawWaitEnd>() }>()?;
        let (words, _) = head.as_chunks();
        let words: [[u8; 8]; size_of::<RawWaitEnd>() / 8] = words.try_into().ok()?;
        let [time, ids, place, ip, ns @ ..] = words.map(u64::from_le_bytes);
        let flags = (place >> 32) as u32;
        (flags & wait_flags::END != 0).then_some(Self {
            time: MonotonicNs::new(time),
            pid: Pid::new(ids as u32),
            tid: Tid::new((ids >> 32) as u32),
            cpu: place as u32,
            captured: flags & wait_flags::CAPTURED != 0,
            ends: flags & wait_flags::THREAD_ENDS != 0,
            ip: Address::new(ip),
            ns,
        })
    }

    /// Returns the waits of a thread that have no sample at `now`, after recording has stopped.
    fn unfinished(tid: u32, raw: &RawWait, now: MonotonicNs) -> Self {
        let [blocked, runnable] = raw.unsampled;
        let now_ns = now.get();
        let waiting = match (raw.since, raw.woken) {
            (0, _) => [0, 0],
            (since, 0) => [now_ns.saturating_sub(since), 0],
            (since, woken) => [woken.saturating_sub(since), now_ns.saturating_sub(woken)],
        };
        let [more_blocked, more_runnable] = waiting;
        Self {
            time: now,
            pid: Pid::new(raw.pid),
            tid: Tid::new(tid),
            cpu: 0,
            // Between two waits, the unsampled ones belong to the last record.
            captured: raw.since == 0 || raw.stride != 0,
            ends: false,
            ip: Address::new(raw.ip),
            ns: [
                blocked.saturating_add(more_blocked),
                runnable.saturating_add(more_runnable),
            ],
        }
    }
}

// SAFETY: plain data without padding (sizes and offsets are tested), of which every bit pattern is valid.
unsafe impl aya::Pod for RawWait {}

/// The loaded shim. Dropping it unloads it.
#[derive(Debug)]
pub struct OffCpuShim {
    shim: Shim,
    waits: HashMap<MapData, u32, RawWait>,
}

impl OffCpuShim {
    /// Loads the programs, which run once they are attached. A thread gets a sample per `period` nanoseconds of waits. The ring is as for
    /// [`Shim::load`].
    pub fn load(ring_pages: usize, period: u64) -> Result<Self, BpfError> {
        let hook = Hook::Switch {
            period: period.max(1),
        };
        let shim = Shim::load_first_of(&VARIANTS, hook, ring_pages.max(1))?;
        let waits = shim.walker.with_object_mut(|object| {
            for (program, _) in OTHERS {
                load(object, program)?;
            }
            object.take_map("waits").ok_or(BpfError::Missing("waits"))
        })?;
        Ok(Self {
            waits: HashMap::try_from(waits).map_err(map_error("waits"))?,
            shim,
        })
    }

    /// Starts recording waits.
    pub fn attach(&mut self) -> Result<(), BpfError> {
        let entry = (self.shim.variant.entry, SWITCH);
        self.shim.walker.with_object_mut(|object| {
            for (name, tracepoint) in OTHERS.into_iter().chain([entry]) {
                let program = object.program_mut(name).ok_or(BpfError::Missing(name))?;
                let program: &mut RawTracePoint = program.try_into()?;
                program.attach(tracepoint)?;
            }
            Ok(())
        })
    }

    /// Stops recording waits.
    pub fn detach(&mut self) -> Result<(), BpfError> {
        let entry = self.shim.variant.entry;
        self.shim.walker.with_object_mut(|object| {
            for name in OTHERS.into_iter().map(|(name, _)| name).chain([entry]) {
                let program = object.program_mut(name).ok_or(BpfError::Missing(name))?;
                let program: &mut RawTracePoint = program.try_into()?;
                match program.unload() {
                    Ok(()) | Err(ProgramError::NotLoaded) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        })
    }

    /// Returns each thread's waits without a sample, after [`Self::detach`] and when the ring has been drained.
    pub fn unfinished(&self, now: MonotonicNs) -> Vec<Wait> {
        let waits = self.waits.iter().filter_map(Result::ok);
        let waits = waits.map(|(tid, raw)| Wait::unfinished(tid, &raw, now));
        waits.filter(|wait| wait.ns != [0, 0]).collect()
    }

    /// Adds a thread that was blocked before the shim could see it: its wait starts now, and it left user code at `ip`. Does nothing if the
    /// shim has seen the thread.
    pub fn add_blocked(
        &mut self,
        pid: Pid,
        tid: Tid,
        ip: Address,
        now: MonotonicNs,
    ) -> Result<(), BpfError> {
        const BPF_NOEXIST: u64 = 1;
        let wait = RawWait {
            since: now.get(),
            ip: ip.get(),
            pid: pid.get(),
            assumed: 1,
            ..RawWait::default()
        };
        match self.waits.insert(tid.get(), wait, BPF_NOEXIST) {
            Err(aya::maps::MapError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::EEXIST) =>
            {
                Ok(())
            }
            inserted => inserted.map_err(map_error("waits")),
        }
    }

    /// As [`Shim::drain`]: passes records of samples, and those that [`Wait::decode`] decodes.
    pub fn drain(&mut self, each: impl FnMut(&[u8])) {
        self.shim.drain(each);
    }

    /// As [`Shim::descriptor`].
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.shim.descriptor()
    }

    /// As [`Shim::walker`].
    pub fn walker(&self) -> super::Walker {
        self.shim.walker()
    }

    /// As [`Shim::set_target`].
    pub fn set_target(&mut self, pid: u32, target: &Target) -> Result<(), BpfError> {
        self.shim.set_target(pid, target)
    }

    /// As [`Shim::remove_target`].
    pub fn remove_target(&mut self, pid: u32) -> Result<(), BpfError> {
        self.shim.remove_target(pid)
    }

    /// As [`Shim::admit_everyone`].
    pub fn admit_everyone(&mut self, target: &Target) -> Result<(), BpfError> {
        self.shim.admit_everyone(target)
    }

    /// Returns how often a target's thread has left its CPU, how often its stacks were captured, and how many threads were not followed.
    pub fn counts(&self) -> Result<(u64, Counters, u64), BpfError> {
        let waits = self.shim.counter(COUNTER_WAITS)?;
        let threads = self.shim.counter(COUNTER_NO_THREAD)?;
        Ok((waits, self.shim.counters()?, threads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(flags: u32) -> Vec<u8> {
        let words = [
            100,
            7 | 8 << 32,
            3 | u64::from(flags) << 32,
            0x5000,
            30,
            12u64,
        ];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn a_wait_is_told_from_a_record_by_its_flags() {
        let wait = Wait::decode(&end(wait_flags::END | wait_flags::CAPTURED)).unwrap();
        assert_eq!((wait.time.get(), wait.cpu, wait.ip.get()), (100, 3, 0x5000));
        assert_eq!((wait.pid, wait.tid), (Pid::new(7), Tid::new(8)));
        assert_eq!((wait.captured, wait.ends, wait.ns), (true, false, [30, 12]));
        assert_eq!(Wait::decode(&end(crate::flags::IN_KERNEL)), None);
        let whole = end(wait_flags::END);
        for len in 0..whole.len() {
            assert_eq!(Wait::decode(&whole[..len]), None);
        }
    }

    #[test]
    fn a_thread_that_waits_at_the_end_lacks_the_time_until_then() {
        let raw = RawWait {
            since: 1_000,
            unsampled: [5, 6],
            stride: 1,
            ..RawWait::default()
        };
        let lacks = |raw: RawWait| Wait::unfinished(8, &raw, MonotonicNs::new(1_100));
        assert_eq!((lacks(raw).ns, lacks(raw).captured), ([105, 6], true));
        let woken = RawWait {
            woken: 1_030,
            stride: 0,
            ..raw
        };
        assert_eq!((lacks(woken).ns, lacks(woken).captured), ([35, 76], false));
        let runs = RawWait {
            since: 0,
            stride: 0,
            ..raw
        };
        assert_eq!((lacks(runs).ns, lacks(runs).captured), ([5, 6], true));
        // Ignore a timestamp that is older than the previous one.
        let later = RawWait {
            since: 2_000,
            ..raw
        };
        assert_eq!(lacks(later).ns, [5, 6]);
    }
}
