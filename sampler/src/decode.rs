//! Decodes the kernel's records in a ring.

use crate::monotonic_ns;
use crate::open::COMMON_SAMPLE;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use varid_model::perf::{
    self, Fields, Header, KernelRecord, Malformed, MappedFile, Mmap2Record, SampleFields,
    SampleLayout,
};
use varid_model::{Address, Device, Holes, Machine, Mode, MonotonicNs, Period, Pid, Regs, Tid};
use varid_shim::{CapturedSample, ManagedFrames, flags};

/// One record of a ring.
#[derive(Debug, Clone, PartialEq)]
pub enum RingEvent {
    /// A sample, from the shim or from perf's own copy of the stack.
    Sample(Box<Sampled>),
    /// The kernel's own sample of an overflow. The shim's record of the same overflow is the [`RingEvent::Sample`] before or after it in
    /// the same ring.
    Raw {
        /// The interrupted thread.
        tid: Tid,
        /// The interrupted instruction.
        ip: Address,
        /// The index of the event among all events.
        event: usize,
        /// The bytes of the record.
        bytes: Vec<u8>,
    },
    /// A process has mapped a file or anonymous memory.
    Mmap(Box<Mmap>),
    /// A thread has changed its name.
    Comm {
        /// The process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// True if the process has executed a new program.
        exec: bool,
        /// The name.
        name: String,
    },
    /// A process or a thread has started.
    Fork {
        /// The process.
        pid: Pid,
        /// Its parent.
        ppid: Pid,
        /// The thread.
        tid: Tid,
        /// The thread that created it.
        ptid: Tid,
    },
    /// A process or a thread has ended.
    Exit {
        /// The process.
        pid: Pid,
        /// Its parent.
        ppid: Pid,
        /// The thread.
        tid: Tid,
        /// The thread that created it.
        ptid: Tid,
    },
    /// The number of records for which the ring had no room.
    Lost(u64),
    /// A record that violates the kernel's ABI.
    Malformed,
    /// The kernel has stopped an event for a while because its rate was too high.
    Throttle,
}

/// A sample of an event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampled {
    /// The index of the event among all events.
    pub event: usize,
    /// Registers, frames and stack.
    pub record: CapturedSample,
    /// For each group member whose count is read with the event's samples: its index, and its count since the thread's last sample.
    pub read: Vec<(usize, u64)>,
}

/// Boxed samples: passing them on does not copy them.
pub type Samples = Vec<Box<Sampled>>;

/// Samples that are no longer needed. Their buffers are reused for the next samples.
#[derive(Debug, Default)]
pub struct SamplePool {
    samples: Samples,
    /// Total size of their stack buffers, in bytes.
    stacks: usize,
}

impl SamplePool {
    /// The maximum number of pooled samples: about one batch at a high rate.
    const MAX: usize = 512;
    /// The maximum size of all pooled stack buffers, in bytes: a quarter of an 8 MB ring with stack copies, which is drained when that much
    /// is in it.
    const MAX_STACKS: usize = 2 << 20;

    /// Puts a sample into the pool.
    pub fn put(&mut self, sampled: Box<Sampled>) {
        let stacks = self.stacks.saturating_add(sampled.record.stack_capacity());
        if self.samples.len() < Self::MAX && stacks <= Self::MAX_STACKS {
            self.stacks = stacks;
            self.samples.push(sampled);
        }
    }

    /// Returns a pooled or new sample. The caller overwrites its record.
    fn take(&mut self, event: usize) -> Box<Sampled> {
        let mut sampled = self.samples.pop().unwrap_or_default();
        self.stacks = self.stacks.saturating_sub(sampled.record.stack_capacity());
        sampled.event = event;
        sampled.read.clear();
        sampled
    }

    /// Decodes a record of the shim into a sample, which is pooled if possible.
    pub fn sample(&mut self, event: usize, bytes: &[u8]) -> Stamped {
        let mut sampled = self.take(event);
        if let Err(error) = sampled.record.read(bytes) {
            tracing::debug!(%error, "a record of the shim's");
            return Stamped::malformed();
        }
        Stamped {
            time: sampled.record.time,
            event: RingEvent::Sample(sampled),
        }
    }
}

/// A mapping as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mmap {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// First address.
    pub start: Address,
    /// Bytes.
    pub len: u64,
    /// Offset in the file.
    pub pgoff: u64,
    /// Device of the file.
    pub device: Device,
    /// Inode of the file.
    pub inode: u64,
    /// Access rights of the process.
    pub mode: Mode,
    /// Path in the process's root, a name in brackets, or `//anon`.
    pub path: PathBuf,
}

/// A record with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Stamped {
    /// When it happened.
    pub time: MonotonicNs,
    /// What happened.
    pub event: RingEvent,
}

impl Stamped {
    /// A record that cannot be decoded. It gets the present time.
    pub fn malformed() -> Self {
        Self {
            time: monotonic_ns(),
            event: RingEvent::Malformed,
        }
    }
}

/// The event that a sample belongs to, found by the kernel's identifier in the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The index of the event among all events.
    pub event: usize,
    /// The form of the sample.
    pub kind: SampleKind,
    /// The event's period if it is fixed. Its samples have no period field.
    pub period: Option<Period>,
    /// True if its samples have the counts of the event's group.
    pub reads: bool,
}

/// The counts of a group in a sample: the kernel's identifier and the count of each event.
pub type Values = Vec<(u64, u64)>;

/// The form of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKind {
    /// The shim's record, raw bytes of a BPF output event.
    Shim,
    /// The kernel's sample of an overflow that the shim has also recorded.
    Raw,
    /// The kernel's sample with a copy of the stack: it replaces the shim's record.
    StackCopy,
}

/// `sample_type` of the stack-copying source.
pub const STACK_COPY_SAMPLE: u64 = COMMON_SAMPLE
    | (perf::PERF_SAMPLE_IP
        | perf::PERF_SAMPLE_PERIOD
        | perf::PERF_SAMPLE_CALLCHAIN
        | perf::PERF_SAMPLE_REGS_USER
        | perf::PERF_SAMPLE_STACK_USER) as u64;

/// Bit mask of the registers that records may need, for `sample_regs_user`.
pub fn regs_mask() -> u64 {
    Machine::NATIVE.perf_mask()
}

/// Decodes one record and the counts of its group. Returns None for a record that is not used.
pub fn decode(
    bytes: &[u8],
    origin: impl Fn(u64) -> Option<Origin>,
    spare: &mut SamplePool,
) -> Option<(Stamped, Values)> {
    decode_whole(bytes, origin, spare).unwrap_or_else(|malformed| {
        tracing::debug!(%malformed, "a record of the kernel's");
        Some((Stamped::malformed(), Values::new()))
    })
}

/// As [`decode`], but returns an error for a malformed record.
fn decode_whole(
    bytes: &[u8],
    origin: impl Fn(u64) -> Option<Origin>,
    spare: &mut SamplePool,
) -> Result<Option<(Stamped, Values)>, Malformed> {
    let no_header = Malformed {
        at: 0,
        reason: "the record is shorter than a header",
    };
    let (header, body) = bytes.split_first_chunk().ok_or(no_header)?;
    let Header { kind, misc, .. } = Header::from_bytes(*header);
    if kind == perf::PERF_RECORD_SAMPLE {
        let in_kernel = misc & perf::PERF_RECORD_MISC_CPUMODE_MASK == perf::PERF_RECORD_MISC_KERNEL;
        return decode_sample(bytes, body, in_kernel, origin, spare).map(Some);
    }
    let Some((time, record)) = KernelRecord::parse(kind, misc, body)? else {
        return Ok(None);
    };
    let event = match record {
        KernelRecord::Mmap2(record) => RingEvent::Mmap(Box::new(mmap(&record))),
        KernelRecord::Comm(record) => RingEvent::Comm {
            pid: record.pid,
            tid: record.tid,
            exec: record.exec,
            name: String::from_utf8_lossy(record.name).into_owned(),
        },
        KernelRecord::Fork(record) => RingEvent::Fork {
            pid: record.pid,
            ppid: record.ppid,
            tid: record.tid,
            ptid: record.ptid,
        },
        KernelRecord::Exit(record) => RingEvent::Exit {
            pid: record.pid,
            ppid: record.ppid,
            tid: record.tid,
            ptid: record.ptid,
        },
        KernelRecord::Lost(count) => RingEvent::Lost(count),
        KernelRecord::Throttle => RingEvent::Throttle,
    };
    let stamped = Stamped { time, event };
    Ok(Some((stamped, Values::new())))
}

fn mmap(record: &Mmap2Record<'_>) -> Mmap {
    let (device, inode) = match record.file {
        MappedFile::Inode {
            major,
            minor,
            inode,
        } => (Device { major, minor }, inode),
        // No event is opened with `build_id` here.
        MappedFile::BuildId(_) => (Device { major: 0, minor: 0 }, 0),
    };
    Mmap {
        pid: record.pid,
        tid: record.tid,
        start: record.start,
        len: record.len,
        pgoff: record.pgoff,
        device,
        inode,
        mode: Mode::from_mmap(record.prot, record.flags),
        path: OsString::from_vec(record.path.to_vec()).into(),
    }
}

impl Origin {
    /// The fields that are decoded from its samples. Later fields are ignored.
    fn layout(&self) -> SampleLayout {
        let mut group = 0;
        if self.reads {
            group |= perf::PERF_SAMPLE_READ;
        }
        if self.period.is_none() && (self.reads || self.kind == SampleKind::StackCopy) {
            group |= perf::PERF_SAMPLE_PERIOD;
        }
        let sample_type = match self.kind {
            SampleKind::Shim => perf::PERF_SAMPLE_RAW,
            SampleKind::Raw => perf::PERF_SAMPLE_IP | group,
            SampleKind::StackCopy => {
                perf::PERF_SAMPLE_IP
                    | group
                    | perf::PERF_SAMPLE_CALLCHAIN
                    | perf::PERF_SAMPLE_REGS_USER
                    | perf::PERF_SAMPLE_STACK_USER
            }
        };
        SampleLayout {
            sample_type,
            registers: regs_mask().count_ones(),
        }
    }
}

fn decode_sample(
    bytes: &[u8],
    body: &[u8],
    in_kernel: bool,
    origin: impl Fn(u64) -> Option<Origin>,
    spare: &mut SamplePool,
) -> Result<(Stamped, Values), Malformed> {
    let mut fields = Fields::new(body);
    let unknown = fields.malformed("a sample of an event that is not open");
    let origin = origin(fields.u64()?).ok_or(unknown)?;
    let event = origin.event;
    let sample = SampleFields::parse(origin.layout(), &mut fields)?;
    let what = match origin.kind {
        SampleKind::Shim => return Ok((spare.sample(event, sample.raw), Values::new())),
        SampleKind::Raw => RingEvent::Raw {
            tid: sample.tid,
            ip: sample.ip,
            event,
            bytes: bytes.to_vec(),
        },
        SampleKind::StackCopy => {
            let mut sampled = spare.take(event);
            copy_stack(&sample, in_kernel, origin.period, &mut sampled.record);
            RingEvent::Sample(sampled)
        }
    };
    let stamped = Stamped {
        time: sample.time,
        event: what,
    };
    Ok((stamped, sample.values.iter().collect()))
}

/// Fills `record` from a sample with a stack copy. `period`: the event's fixed period, if it has one.
///
/// A precise event has the exact instruction, but its callchain starts where the interrupt arrived, possibly after the thread has entered
/// the kernel.
fn copy_stack(
    sample: &SampleFields<'_>,
    in_kernel: bool,
    period: Option<Period>,
    record: &mut CapturedSample,
) {
    let mut words = [0; u64::BITS as usize];
    let registers = words.iter_mut().zip(sample.registers);
    let count = registers
        .map(|(to, word)| *to = u64::from_le_bytes(*word))
        .count();
    let words = words.get(..count).unwrap_or_default();
    let CapturedSample {
        time,
        pid,
        tid,
        cpu,
        flags: set,
        period: counted,
        ip,
        regs,
        frames,
        kernel,
        stack_addr,
        stack,
        holes,
        interrupted,
        beyond,
        code,
        allocated,
    } = record;
    kernel.clear();
    let mode = match in_kernel {
        true => flags::IN_KERNEL,
        false => 0,
    };
    if in_kernel {
        let addresses = sample.callchain.addresses();
        kernel.extend(addresses.filter_map(|(context, address)| {
            let is_kernel = context == Some(perf::PERF_CONTEXT_KERNEL);
            is_kernel.then_some(address)
        }));
        if let Some(leaf) = kernel.first_mut() {
            *leaf = sample.ip;
        }
    }
    *time = sample.time;
    (*pid, *tid) = (sample.pid, sample.tid);
    (*cpu, *set) = (sample.cpu, flags::NO_WALK | mode);
    *counted = period.unwrap_or(sample.period);
    *ip = sample.ip;
    *regs = Regs::from_perf(Machine::NATIVE, sample.registers_abi, words);
    *frames = ManagedFrames::default();
    *stack_addr = Address::new(regs.sp().unwrap_or(0));
    stack.clear();
    stack.extend_from_slice(sample.stack);
    *holes = Holes::default();
    // perf copies only the stack from the stack pointer on.
    interrupted.bytes.clear();
    beyond.clear();
    code.clear();
    *allocated = None;
}

#[cfg(test)]
mod tests;
