//! The shim as a BPF program: loads it, sets its targets, and attaches it to perf events.

use crate::abi::{COUNTER_NO_SPACE, COUNTER_SAMPLES, RawJvm, RawStates, RawTarget};
use crate::target::{CodeStates, Target};
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, ProgramArray, RingBuf};
use aya::programs::Program;
use aya::util::{nr_cpus, online_cpus};
use aya::{Ebpf, EbpfError, EbpfLoader};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

mod denied;
mod error;
mod object;
mod off_cpu;
mod probe;
mod tracepoint;
mod walker;

pub use denied::Denied;
pub use error::BpfError;
pub use off_cpu::{OffCpuShim, Wait, WaitKind};
pub use probe::HitWeight;
pub use walker::Walker;

use object::{Object, object};

/// The programs for overflows.
static OVERFLOW_OBJECT: Object = object!("varid");

/// The hook that runs a shim's programs.
#[derive(Debug, Clone, Copy)]
enum Hook {
    /// The overflow of an event. `keep_all`: keep the kernel's own sample of each overflow, even outside of targets.
    Overflow { keep_all: bool },
    /// A tracepoint. `period`: hits per sample.
    Tracepoint { period: u64 },
    /// A uprobe or kprobe. `period`: hits per sample, or what they count as.
    Probe { period: u64, weight: HitWeight },
    /// The scheduler's switches of threads. `period`: nanoseconds of waits per sample of a thread.
    Switch { period: u64 },
}

impl Hook {
    fn object(self) -> Object {
        match self {
            Self::Overflow { .. } => OVERFLOW_OBJECT,
            Self::Tracepoint { .. } => tracepoint::OBJECT,
            Self::Probe { .. } => probe::OBJECT,
            Self::Switch { .. } => off_cpu::OBJECT,
        }
    }
}

/// An entry point, and the program for all rules that it tail-calls.
struct Variant {
    entry: &'static str,
    any: &'static str,
}

/// The variant with bpf_loop, then the one without.
const VARIANTS: [Variant; 2] = [
    Variant {
        entry: "varid_sample",
        any: "varid_sample_any",
    },
    Variant {
        entry: "varid_sample_no_loop",
        any: "varid_sample_any_no_loop",
    },
];

/// Counts since the shim was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Overflows in targets.
    pub samples: u64,
    /// Records lost for lack of space in their ring.
    pub no_space: u64,
}

/// The loaded shim. Dropping it unloads it once its events are closed.
pub struct Shim {
    variant: &'static Variant,
    /// Its programs, including the one that it tail-calls for rules other than the basic ones.
    walker: Walker,
    targets: HashMap<MapData, u32, RawTarget>,
    everyone: Array<MapData, RawTarget>,
    jvms: HashMap<MapData, u32, RawJvm>,
    states: Array<MapData, RawStates>,
    /// The states in each slot of the map of states.
    known_states: Vec<CodeStates>,
    /// The slot of each target with states, counted from 1.
    users_of_states: std::collections::HashMap<u32, u32>,
    counters: PerCpuArray<MapData, u64>,
    records: RingBuf<MapData>,
    /// Size of the ring, in bytes.
    capacity: usize,
}

impl std::fmt::Debug for Shim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shim")
            .field("program", &self.variant())
            .finish_non_exhaustive()
    }
}

// SAFETY: plain data without padding (sizes and offsets are tested), of which every bit pattern is valid.
unsafe impl aya::Pod for RawTarget {}
// SAFETY: the same.
unsafe impl aya::Pod for RawStates {}
// SAFETY: the same.
unsafe impl aya::Pod for RawJvm {}

impl Shim {
    /// Loads the program, preferring the variant with bpf_loop. Its records have their own ring, of `ring_pages` pages for each CPU, or fewer
    /// if the kernel refuses that many. 0: they go to the event's ring, where the kernel's own sample of the overflow follows.
    pub fn load(ring_pages: usize) -> Result<Self, BpfError> {
        Self::load_first_of(&VARIANTS, Hook::Overflow { keep_all: false }, ring_pages)
    }

    /// Loads the program without such a ring. The kernel's own sample of every overflow is kept, even outside of targets.
    pub fn load_keeping_all() -> Result<Self, BpfError> {
        Self::load_first_of(&VARIANTS, Hook::Overflow { keep_all: true }, 0)
    }

    fn load_first_of(
        variants: &'static [Variant],
        hook: Hook,
        ring_pages: usize,
    ) -> Result<Self, BpfError> {
        match Self::load_one_of(variants, hook, ring_pages, true) {
            Err(BpfError::Program(error)) => {
                tracing::debug!(%error, "trying the shim without tail calls");
                Self::load_one_of(variants, hook, ring_pages, false)
            }
            loaded => loaded,
        }
    }

    fn load_one_of(
        variants: &'static [Variant],
        hook: Hook,
        ring_pages: usize,
        tail_calls: bool,
    ) -> Result<Self, BpfError> {
        let LoadedObject { mut ebpf, ring } = LoadedObject::new(hook, ring_pages, tail_calls)?;
        let maps = Maps::take(&mut ebpf)?;
        let mut refused = None;
        for variant in variants {
            match load(&mut ebpf, variant.entry) {
                Ok(()) => {
                    return Ok(Self {
                        walker: Walker::new(ebpf, variant.any, tail_calls.then_some(maps.walkers)),
                        variant,
                        targets: maps.targets,
                        everyone: maps.everyone,
                        jvms: maps.jvms,
                        states: maps.states,
                        known_states: Vec::new(),
                        users_of_states: std::collections::HashMap::new(),
                        counters: maps.counters,
                        records: maps.records,
                        capacity: ring as usize,
                    });
                }
                Err(BpfError::Program(error)) => {
                    tracing::debug!(program = variant.entry, %error, "the kernel refuses this variant of the shim");
                    refused.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused.map_or(BpfError::Missing("program"), BpfError::Program))
    }

    /// Name of the variant in use.
    pub fn variant(&self) -> &'static str {
        self.variant.entry
    }

    /// Runs the shim at every overflow of `event`, an event of `cpu`. Its records go to `output`, a BPF output event of the same CPU.
    pub fn attach(
        &self,
        cpu: u32,
        event: BorrowedFd<'_>,
        output: BorrowedFd<'_>,
    ) -> Result<(), BpfError> {
        self.walker
            .with_object(|object| self.attach_in(object, cpu, event, output))
    }

    fn attach_in(
        &self,
        object: &Ebpf,
        cpu: u32,
        event: BorrowedFd<'_>,
        output: BorrowedFd<'_>,
    ) -> Result<(), BpfError> {
        let Some(Map::PerfEventArray(rings)) = object.map("rings") else {
            return Err(BpfError::Missing("rings"));
        };
        bpf_map_update(rings.fd().as_fd(), cpu, output.as_raw_fd()).map_err(|source| {
            BpfError::Attach {
                cpu,
                step: "bpf(MAP_UPDATE_ELEM)",
                source,
            }
        })?;
        run_at(object, self.variant.entry, event)?.map_err(|source| BpfError::Attach {
            cpu,
            step: "PERF_EVENT_IOC_SET_BPF",
            source,
        })
    }

    /// Passes all records in the records' own ring to `each`, and releases their space. New records that arrive meanwhile are limited to the
    /// ring's capacity.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) {
        let mut left = self.capacity;
        while left > 0
            && let Some(record) = self.records.next()
        {
            left = left.saturating_sub(record.len());
            each(&record);
        }
    }

    /// The descriptor that is readable when a CPU has filled a quarter of its part of that ring. Use an edge-triggered epoll.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.records.as_fd()
    }

    /// The program that walks the frames of targets with [`Target::needs_walker`].
    pub fn walker(&self) -> Walker {
        self.walker.clone()
    }

    /// Adds or changes the target of a process (its id in the initial pid namespace). While the [`Self::walker`] that it needs is not loaded,
    /// its records have linked frames only ([`crate::flags::LINKED_ONLY`]) or none ([`crate::flags::NO_WALK`]), and a copy of the stack with
    /// the others.
    pub fn set_target(&mut self, pid: u32, target: &Target) -> Result<(), BpfError> {
        self.users_of_states.remove(&pid);
        let slot = self.slot_of(pid, &target.states)?;
        if slot != 0 {
            self.users_of_states.insert(pid, slot);
        }
        match &target.jvm {
            Some(jvm) => put(&mut self.jvms, "jvms", pid, jvm.0)?,
            None => take_out(&mut self.jvms, "jvms", pid)?,
        }
        put(&mut self.targets, "targets", pid, target.raw(slot))
    }

    /// Returns the slot of these states, counted from 1, or 0 if there are none or all slots are used by other states.
    fn slot_of(&mut self, pid: u32, states: &CodeStates) -> Result<u32, BpfError> {
        if states.is_empty() {
            return Ok(0);
        }
        let slot = |at: usize| u32::try_from(at).map_or(0, |at| at.saturating_add(1));
        let known = |known: &CodeStates| known == states;
        if let Some(at) = self.known_states.iter().position(known) {
            return Ok(slot(at));
        }
        let at = match self.known_states.len() {
            len if len < self.states.len() as usize => len,
            len => {
                let is_free =
                    |at: &usize| !self.users_of_states.values().any(|used| *used == slot(*at));
                let Some(free) = (0..len).find(is_free) else {
                    tracing::warn!(
                        "process {pid}: its interpreter is one of more than {len} different ones: samples in the middle of a call lack their callers"
                    );
                    return Ok(0);
                };
                free
            }
        };
        self.states
            .set(slot(at).saturating_sub(1), states.table(), 0)
            .map_err(map_error("states"))?;
        match self.known_states.get_mut(at) {
            Some(known) => *known = states.clone(),
            None => self.known_states.push(states.clone()),
        }
        Ok(slot(at))
    }

    /// Removes the target of a process; unknown processes are ignored.
    pub fn remove_target(&mut self, pid: u32) -> Result<(), BpfError> {
        self.users_of_states.remove(&pid);
        take_out(&mut self.jvms, "jvms", pid)?;
        take_out(&mut self.targets, "targets", pid)
    }

    /// Sets the target of all processes without one of their own.
    pub fn admit_everyone(&mut self, target: &Target) -> Result<(), BpfError> {
        self.everyone
            .set(0, target.raw(0), 0)
            .map_err(map_error("everyone"))
    }

    /// Returns the counters, summed over all CPUs.
    pub fn counters(&self) -> Result<Counters, BpfError> {
        Ok(Counters {
            samples: self.counter(COUNTER_SAMPLES)?,
            no_space: self.counter(COUNTER_NO_SPACE)?,
        })
    }

    /// Returns a counter, summed over all CPUs.
    fn counter(&self, index: u32) -> Result<u64, BpfError> {
        let values = self
            .counters
            .get(&index, 0)
            .map_err(map_error("counters"))?;
        Ok(values.iter().fold(0, |sum, value| sum.wrapping_add(*value)))
    }
}

/// Sets a process's entry of a map.
fn put<V: aya::Pod>(
    map: &mut HashMap<MapData, u32, V>,
    name: &'static str,
    pid: u32,
    value: V,
) -> Result<(), BpfError> {
    map.insert(pid, value, 0).map_err(|error| match error {
        MapError::SyscallError(error) if error.io_error.raw_os_error() == Some(libc::E2BIG) => {
            BpfError::TooManyTargets
        }
        source => map_error(name)(source),
    })
}

/// Removes a process's entry of a map, if there is one.
fn take_out<V: aya::Pod>(
    map: &mut HashMap<MapData, u32, V>,
    name: &'static str,
    pid: u32,
) -> Result<(), BpfError> {
    match map.remove(&pid) {
        Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(error))
            if error.io_error.raw_os_error() == Some(libc::ENOENT) =>
        {
            Ok(())
        }
        Err(source) => Err(map_error(name)(source)),
    }
}

/// An object with its maps. Its programs are not loaded yet.
struct LoadedObject {
    ebpf: Ebpf,
    /// Size of its ring in bytes.
    ring: u32,
}

impl LoadedObject {
    /// Creates the maps of the object for a hook. The ring gets half the size while the kernel refuses it.
    fn new(hook: Hook, ring_pages: usize, tail_calls: bool) -> Result<Self, BpfError> {
        let unknown = |(path, source)| BpfError::Cpus { path, source };
        let possible = u32::try_from(nr_cpus().map_err(unknown)?).unwrap_or(u32::MAX);
        let online = online_cpus().map_err(unknown)?.len();
        let (keep_all, period) = match hook {
            Hook::Overflow { keep_all } => (u32::from(keep_all), 0),
            Hook::Tracepoint { period } | Hook::Probe { period, .. } | Hook::Switch { period } => {
                (0, period)
            }
        };
        let scratches = match hook {
            Hook::Probe { .. } => probe::scratches(possible),
            _ => possible,
        };
        let allocations = match hook {
            Hook::Probe { weight, .. } => u32::from(weight == HitWeight::Allocation),
            _ => 0,
        };
        let object = hook.object().decompressed()?;
        let mut ring = shared_ring(ring_pages, online, page_size());
        let mut ebpf = loop {
            let wake_bytes = match ring_pages {
                0 => 0,
                _ => wake_bytes(ring, online),
            };
            // Each object contains only the maps and globals of its own hook.
            let loaded = EbpfLoader::new()
                .map_max_entries("scratches", scratches)
                .map_max_entries("idle_scratches", scratches)
                .map_max_entries("taken_scratches", scratches)
                .map_max_entries("records", ring)
                .override_global("varid_wake_bytes", &wake_bytes, true)
                .override_global("varid_keep_all", &keep_all, false)
                .override_global("varid_wait_period", &period, false)
                .override_global("varid_hits", &period, false)
                .override_global("varid_allocations", &allocations, false)
                .override_global("varid_tail_calls", &u32::from(tail_calls), true)
                .load(&object);
            match loaded {
                Ok(ebpf) => break ebpf,
                Err(error) if ring > LEAST_RING && lacks_memory(&error) => {
                    tracing::debug!(bytes = ring, %error, "trying a smaller ring");
                    ring /= 2;
                }
                Err(error) => return Err(error.into()),
            }
        };
        if let Hook::Probe { .. } = hook {
            probe::fill(&mut ebpf, scratches)?;
        }
        Ok(Self { ebpf, ring })
    }
}

/// The maps of an object that the shim uses.
struct Maps {
    targets: HashMap<MapData, u32, RawTarget>,
    everyone: Array<MapData, RawTarget>,
    jvms: HashMap<MapData, u32, RawJvm>,
    states: Array<MapData, RawStates>,
    counters: PerCpuArray<MapData, u64>,
    records: RingBuf<MapData>,
    walkers: ProgramArray<MapData>,
}

impl Maps {
    /// Takes the maps out of an object.
    fn take(ebpf: &mut Ebpf) -> Result<Self, BpfError> {
        let mut take = |name| ebpf.take_map(name).ok_or(BpfError::Missing(name));
        Ok(Self {
            targets: HashMap::try_from(take("targets")?).map_err(map_error("targets"))?,
            everyone: Array::try_from(take("everyone")?).map_err(map_error("everyone"))?,
            jvms: HashMap::try_from(take("jvms")?).map_err(map_error("jvms"))?,
            states: Array::try_from(take("states")?).map_err(map_error("states"))?,
            counters: PerCpuArray::try_from(take("counters")?).map_err(map_error("counters"))?,
            records: RingBuf::try_from(take("records")?).map_err(map_error("records"))?,
            walkers: ProgramArray::try_from(take("walkers")?).map_err(map_error("walkers"))?,
        })
    }
}

/// Loads a program of an object.
fn load(ebpf: &mut Ebpf, name: &'static str) -> Result<(), BpfError> {
    match ebpf.program_mut(name).ok_or(BpfError::Missing(name))? {
        Program::PerfEvent(program) => program.load()?,
        Program::RawTracePoint(program) => program.load()?,
        Program::KProbe(program) => program.load()?,
        _ => return Err(BpfError::Missing(name)),
    }
    Ok(())
}

/// Runs a program of an object at every overflow of a perf event.
fn run_at(
    object: &Ebpf,
    program: &'static str,
    event: BorrowedFd<'_>,
) -> Result<io::Result<()>, BpfError> {
    let program = object.program(program).ok_or(BpfError::Missing(program))?;
    let program = program.fd()?.as_fd().as_raw_fd();
    // SAFETY: PERF_EVENT_IOC_SET_BPF takes a file descriptor by value; both live through the call.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_SET_BPF, program) };
    Ok(match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    })
}

/// The smallest ring that is tried, in bytes.
const LEAST_RING: u32 = 1 << 16;

/// Returns the size of the ring that these CPUs share, in bytes: a power of two, as the kernel requires.
fn shared_ring(pages: usize, cpus: usize, page: usize) -> u32 {
    const MOST: usize = 1 << 30;
    let bytes = pages.saturating_mul(page).saturating_mul(cpus);
    bytes.clamp(page, MOST).next_power_of_two() as u32
}

/// Returns a quarter of each CPU's part of the ring.
fn wake_bytes(ring: u32, cpus: usize) -> u64 {
    let part = u64::from(ring).checked_div(cpus as u64);
    (part.unwrap_or_default() / 4).max(1)
}

/// Returns true if the kernel has no memory for the ring, or this user must not lock that much (before 5.11).
fn lacks_memory(error: &EbpfError) -> bool {
    let EbpfError::MapError(MapError::CreateError { name, io_error }) = error else {
        return false;
    };
    name == "records" && matches!(io_error.raw_os_error(), Some(libc::ENOMEM | libc::EPERM))
}

fn page_size() -> usize {
    // SAFETY: sysconf takes a number and accesses no memory of the caller.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

fn map_error(map: &'static str) -> impl Fn(MapError) -> BpfError {
    move |source| BpfError::Map { map, source }
}

/// `_IOW('$', 8, __u32)` of linux/perf_event.h.
const PERF_EVENT_IOC_SET_BPF: libc::Ioctl = 0x4004_2408_u32 as libc::Ioctl;

/// bpf(BPF_MAP_UPDATE_ELEM): aya can put only its own events into a perf event array.
fn bpf_map_update(map: BorrowedFd<'_>, key: u32, value: i32) -> io::Result<()> {
    /// `union bpf_attr`, the part for map elements.
    #[repr(C)]
    struct MapElement {
        map_fd: u32,
        reserved: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
    let attr = MapElement {
        map_fd: map.as_raw_fd() as u32,
        reserved: 0,
        key: std::ptr::from_ref(&key) as u64,
        value: std::ptr::from_ref(&value) as u64,
        flags: 0,
    };
    // SAFETY: `attr` has the layout that the kernel expects for this command; key and value are 4 bytes each, as the map declares, and live
    // through the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_UPDATE_ELEM,
            std::ptr::from_ref(&attr),
            size_of::<MapElement>(),
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
