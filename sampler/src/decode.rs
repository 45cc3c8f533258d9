//! The kernel's records, decoded: what a ring delivers.

use crate::monotonic_ns;
use crate::open::COMMON_SAMPLE;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use varid_model::{Machine, Regs};
use varid_model::{Mode, perf};
use varid_shim::{Record, flags};
use varid_tunnel::maps::Device;

/// One record of a ring.
#[derive(Debug, Clone, PartialEq)]
pub enum RingEvent {
    /// A sample, from the shim or from perf's own copy of the stack.
    Sample(Box<Sampled>),
    /// The kernel's own sample of the overflow that the next or last [`RingEvent::Sample`]
    /// of the same ring came from: its time, and the record as it was.
    Raw {
        /// The interrupted thread.
        tid: u32,
        /// The interrupted instruction.
        ip: u64,
        /// The place of the event among all events.
        event: usize,
        /// The record.
        bytes: Vec<u8>,
    },
    /// A file or memory was mapped.
    Mmap(Box<Mmap>),
    /// A thread took a name; `exec`: because it runs a new program.
    Comm {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// It is named by an exec.
        exec: bool,
        /// The name.
        name: String,
    },
    /// A process or thread was forked.
    Fork {
        /// The process.
        pid: u32,
        /// Its parent.
        ppid: u32,
        /// The thread.
        tid: u32,
        /// The thread that made it.
        ptid: u32,
    },
    /// A process or thread ended.
    Exit {
        /// The process.
        pid: u32,
        /// Its parent.
        ppid: u32,
        /// The thread.
        tid: u32,
        /// The thread that made it.
        ptid: u32,
    },
    /// Records that the kernel had no room for.
    Lost(u64),
    /// A record, or what is behind it in the ring, is not what the kernel's ABI says: nobody knows what it was.
    Malformed,
    /// The event was stopped for a while because it came too often.
    Throttle,
}

/// A sample of an event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampled {
    /// The place of the event among all events.
    pub event: usize,
    /// What was seen.
    pub record: Record,
    /// The members of the event's group that are read with its samples, by their places: what
    /// they have counted since its last one.
    pub read: Vec<(usize, u64)>,
}

/// Samples that are kept in the place in memory where they were decoded.
pub type Samples = Vec<Box<Sampled>>;

/// Samples that are done with: those that come take their memory, so that none has to be asked
/// for and given back at each turn.
#[derive(Debug, Default)]
pub struct Spare(Samples);

impl Spare {
    /// So many are kept: what a turn brings at a high rate.
    const MAX: usize = 512;
    /// Those with a larger copy of the stack are not: together they might have a lot.
    const MAX_STACK: usize = 4096;

    /// The sample is done with.
    pub fn put(&mut self, sampled: Box<Sampled>) {
        if self.0.len() < Self::MAX && sampled.record.stack.capacity() <= Self::MAX_STACK {
            self.0.push(sampled);
        }
    }

    /// A sample of the shim's record in `bytes`.
    pub fn sample(&mut self, event: usize, bytes: &[u8]) -> Stamped {
        let mut sampled = self.0.pop().unwrap_or_default();
        sampled.event = event;
        sampled.read.clear();
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
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file.
    pub pgoff: u64,
    /// Device of the file.
    pub device: Device,
    /// Inode of the file.
    pub inode: u64,
    /// What the process may do with it.
    pub mode: Mode,
    /// Path as the process's root sees it, or a name in brackets or `//anon`.
    pub path: PathBuf,
}

/// A record with the moment and place it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Stamped {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time: u64,
    /// What happened.
    pub event: RingEvent,
}

impl Stamped {
    /// A record that says nothing, not even when it was made.
    pub fn malformed() -> Self {
        Self {
            time: monotonic_ns(),
            event: RingEvent::Malformed,
        }
    }
}

/// Where a sample comes from, by its identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The place of the event among all events.
    pub event: usize,
    /// What the sample is.
    pub kind: SampleKind,
    /// The event's period, where it is fixed: the sample does not say it.
    pub period: Option<u64>,
    /// It has the values of a group.
    pub reads: bool,
}

/// Values of the events of a group, each behind the identifier that the kernel gave the event.
pub type Values = Vec<(u64, u64)>;

/// What a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKind {
    /// The shim's record, raw bytes of a BPF output event.
    Shim,
    /// The kernel's sample of an overflow that the shim has recorded, too.
    Raw,
    /// The kernel's sample with a copy of the stack: the record itself.
    StackCopy,
}

/// What the stack-copying source asks the kernel for.
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

/// Decodes one record and the values of a group that came with it; None: of no interest.
pub fn decode(
    bytes: &[u8],
    origin: impl Fn(u64) -> Option<Origin>,
    spare: &mut Spare,
) -> Option<(Stamped, Values)> {
    let malformed = || Some((Stamped::malformed(), Values::new()));
    decode_whole(bytes, origin, spare).unwrap_or_else(malformed)
}

/// None: it is not what the kernel's ABI says; `Some(None)`: it is of no interest.
fn decode_whole(
    bytes: &[u8],
    origin: impl Fn(u64) -> Option<Origin>,
    spare: &mut Spare,
) -> Option<Option<(Stamped, Values)>> {
    let mut reader = Reader(bytes);
    let kind = reader.u32()?;
    let misc = reader.u16()?;
    reader.u16()?;
    if kind == perf::PERF_RECORD_SAMPLE {
        return decode_sample(bytes, reader, origin, spare).map(Some);
    }
    let event = match kind {
        perf::PERF_RECORD_MMAP2 => {
            let (pid, tid) = (reader.u32()?, reader.u32()?);
            let (start, len, pgoff) = (reader.u64()?, reader.u64()?, reader.u64()?);
            let (major, minor, inode) = (reader.u32()?, reader.u32()?, reader.u64()?);
            reader.u64()?; // inode generation
            let mode = Mode::from_mmap(reader.u32()?, reader.u32()?);
            RingEvent::Mmap(Box::new(Mmap {
                pid,
                tid,
                start,
                len,
                pgoff,
                device: Device { major, minor },
                inode,
                mode,
                path: OsString::from_vec(reader.bytes().to_vec()).into(),
            }))
        }
        perf::PERF_RECORD_COMM => RingEvent::Comm {
            pid: reader.u32()?,
            tid: reader.u32()?,
            exec: misc & perf::PERF_RECORD_MISC_COMM_EXEC != 0,
            name: reader.text(),
        },
        perf::PERF_RECORD_FORK | perf::PERF_RECORD_EXIT => {
            let (pid, ppid, tid, ptid) =
                (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
            if kind == perf::PERF_RECORD_FORK {
                RingEvent::Fork {
                    pid,
                    ppid,
                    tid,
                    ptid,
                }
            } else {
                RingEvent::Exit {
                    pid,
                    ppid,
                    tid,
                    ptid,
                }
            }
        }
        perf::PERF_RECORD_LOST => {
            reader.u64()?; // the event's id
            RingEvent::Lost(reader.u64()?)
        }
        perf::PERF_RECORD_LOST_SAMPLES => RingEvent::Lost(reader.u64()?),
        perf::PERF_RECORD_THROTTLE => RingEvent::Throttle,
        _ => return Some(None),
    };
    // sample_id_all: pid, tid, time, cpu, reserved, identifier.
    let trailer = bytes
        .len()
        .checked_sub(32)
        .and_then(|at| bytes.get(at.saturating_add(8)..))?;
    let stamped = Stamped {
        time: Reader(trailer).u64()?,
        event,
    };
    Some(Some((stamped, Values::new())))
}

fn decode_sample(
    bytes: &[u8],
    mut reader: Reader<'_>,
    origin: impl Fn(u64) -> Option<Origin>,
    spare: &mut Spare,
) -> Option<(Stamped, Values)> {
    let Origin {
        event,
        kind,
        period: fixed,
        reads,
    } = origin(reader.u64()?)?;
    let mut values = Values::new();
    let ip = if kind == SampleKind::Shim {
        0
    } else {
        reader.u64()?
    };
    let (pid, tid, time) = (reader.u32()?, reader.u32()?, reader.u64()?);
    let cpu = reader.u32()?;
    reader.u32()?;
    let what = match kind {
        SampleKind::Shim => {
            let len = reader.u32()? as usize;
            let stamped = spare.sample(event, reader.take(len)?);
            return Some((stamped, values));
        }
        SampleKind::Raw => {
            if reads {
                fixed.or_else(|| reader.u64())?;
                values = group_values(&mut reader)?;
            }
            RingEvent::Raw {
                tid,
                ip,
                event,
                bytes: bytes.to_vec(),
            }
        }
        SampleKind::StackCopy => {
            let period = fixed.or_else(|| reader.u64())?;
            if reads {
                values = group_values(&mut reader)?;
            }
            let (kernel, in_kernel) = kernel_callchain(&mut reader)?;
            let regs = user_regs(&mut reader)?;
            let size = reader.u64()? as usize;
            let stack = reader.take(size)?;
            let used = if size == 0 { 0 } else { reader.u64()? as usize };
            let record = Record {
                time,
                pid,
                tid,
                cpu,
                flags: flags::NO_WALK | if in_kernel { flags::IN_KERNEL } else { 0 },
                period,
                ip,
                regs,
                frames: Vec::new(),
                packed: Vec::new(),
                kernel,
                stack_addr: regs.sp().unwrap_or(0),
                stack: stack.get(..used)?.to_vec(),
            };
            RingEvent::Sample(Box::new(Sampled {
                event,
                record,
                read: Vec::new(),
            }))
        }
    };
    Some((Stamped { time, event: what }, values))
}

/// `PERF_SAMPLE_READ` with `PERF_FORMAT_GROUP`, `ID` and both times.
fn group_values(reader: &mut Reader<'_>) -> Option<Values> {
    let count = reader.u64()?;
    reader.u64()?; // time enabled
    reader.u64()?; // time running
    let mut values = Values::new();
    for _ in 0..count {
        let value = reader.u64()?;
        values.push((reader.u64()?, value));
    }
    Some(values)
}

/// The kernel's part of a callchain, and whether the sample was taken in the kernel.
fn kernel_callchain(reader: &mut Reader<'_>) -> Option<(Vec<u64>, bool)> {
    let entries = reader.u64()?;
    let mut kernel = Vec::new();
    let mut in_kernel_part = false;
    for _ in 0..entries {
        match reader.u64()? {
            perf::PERF_CONTEXT_KERNEL => in_kernel_part = true,
            marker if marker >= perf::PERF_CONTEXT_MAX => in_kernel_part = false,
            address if in_kernel_part => kernel.push(address),
            _ => {}
        }
    }
    let in_kernel = !kernel.is_empty();
    Some((kernel, in_kernel))
}

/// `PERF_SAMPLE_REGS_USER`: the ABI word, then the registers of the mask in bit order.
fn user_regs(reader: &mut Reader<'_>) -> Option<Regs> {
    let abi = reader.u64()?;
    let count = if abi == 0 {
        0
    } else {
        regs_mask().count_ones()
    };
    let words: Option<Vec<u64>> = (0..count).map(|_| reader.u64()).collect();
    Some(Regs::from_perf(Machine::NATIVE, abi, &words?))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
    fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
    /// As far as the first zero.
    fn bytes(&self) -> &'a [u8] {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(self.0.len());
        self.0.get(..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
