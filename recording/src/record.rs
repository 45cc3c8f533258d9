//! Defines the records of a recording.

use std::path::PathBuf;

use varid_model::{Address, FrameAddress, Mode, MonotonicNs, Period, Pid, Precision, Tid};

/// The start of the shim's own addresses. Methods without bytecode of their own and markers lie in this range of every profiled process,
/// backed by `symbols/remap.elf`.
pub const REMAP_BASE: u64 = 0x6000_0000_0000;

/// The size of the range from [`REMAP_BASE`], in bytes.
pub const REMAP_SIZE: u64 = 0x100_0000;

/// The user id of a process whose user is not known.
pub const NO_UID: u32 = u32::MAX;

/// Where the sampled instruction ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// In the kernel: the leaf is the first of the kernel's callchain.
    Kernel,
    /// In the process: the leaf is the first of the user's callchain.
    User,
}

/// One attributed sample, with callchains of its own or borrowed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample<Chain = Vec<Address>> {
    /// The event of the sample, by its place in the session's [`SessionEvents`](crate::SessionEvents). An event that is read with its
    /// leader's samples has samples of its own, of the same place and time.
    pub event: usize,
    /// The time.
    pub time: MonotonicNs,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The CPU on which it was taken.
    pub cpu: u32,
    /// Event counts since the last sample (nanoseconds for cpu-clock).
    pub period: Period,
    /// The instruction pointer that the PMU saw, before any remapping.
    pub original_ip: Address,
    /// For a precise event of another recorder, the address where its interrupt came. The callchain was recorded from there. The leaf is
    /// the sampled instruction; symbols show whether the function of the interrupt had called it. `None` if the interrupt came at the leaf.
    pub interrupt: Option<Address>,
    /// The mode: kernel or user.
    pub mode: CpuMode,
    /// The effective user id of the process, or [`NO_UID`] if it is not known.
    pub uid: u32,
    /// The frame of the innermost managed method: the VM's frame pointer. `None` if there is no such frame, or it has no address.
    pub frame: Option<Address>,
    /// The precision of the instruction of that method.
    pub precision: Precision,
    /// The kernel's addresses, leaf first. Callers are return addresses.
    pub kernel: Chain,
    /// The user's addresses, leaf first: native addresses, dex addresses (for callers the invoke's address + 1) and addresses of the remap
    /// range.
    pub user: Chain,
}

impl Sample {
    /// Returns the sample with borrowed callchains.
    #[must_use]
    pub fn borrowed(&self) -> Sample<&[Address]> {
        self.with_chains(&self.kernel, &self.user)
    }
}

impl Sample<&[Address]> {
    /// Returns the sample with callchains of its own.
    #[must_use]
    pub fn to_owned(&self) -> Sample {
        self.with_chains(self.kernel.to_vec(), self.user.to_vec())
    }
}

impl<Chain> Sample<Chain> {
    /// Returns the sample with other callchains.
    pub(crate) fn with_chains<Other>(&self, kernel: Other, user: Other) -> Sample<Other> {
        let Self {
            event,
            time,
            pid,
            tid,
            cpu,
            period,
            original_ip,
            interrupt,
            mode,
            uid,
            frame,
            precision,
            kernel: _,
            user: _,
        } = *self;
        Sample {
            event,
            time,
            pid,
            tid,
            cpu,
            period,
            original_ip,
            interrupt,
            mode,
            uid,
            frame,
            precision,
            kernel,
            user,
        }
    }
}

impl<Chain: AsRef<[Address]>> Sample<Chain> {
    /// Iterates over the kernel's frames, leaf first.
    pub fn kernel_frames(&self) -> impl ExactSizeIterator<Item = FrameAddress> {
        frames(self.kernel.as_ref())
    }

    /// Iterates over the user's frames, leaf first. A leaf that entered the kernel is an [`Instruction`](FrameAddress::Instruction), too.
    pub fn user_frames(&self) -> impl ExactSizeIterator<Item = FrameAddress> {
        frames(self.user.as_ref())
    }
}

fn frames(chain: &[Address]) -> impl ExactSizeIterator<Item = FrameAddress> {
    let frame = |(depth, address): (usize, &Address)| FrameAddress::in_callchain(depth, *address);
    chain.iter().enumerate().map(frame)
}

/// A range of a process's addresses that a file stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingRecord {
    /// The time.
    pub time: MonotonicNs,
    /// The process, or [`Pid::KERNEL`] for the kernel's own.
    pub pid: Pid,
    /// The thread that mapped it.
    pub tid: Tid,
    /// The first address.
    pub start: Address,
    /// The size in bytes.
    pub len: u64,
    /// The offset of `start` in the file.
    pub pgoff: u64,
    /// True for the kernel's own mappings (`[kernel.kallsyms]_text` and modules).
    pub kernel: bool,
    /// What the process may do with it. `None` if that is not known, or no process has mapped it.
    pub mode: Option<Mode>,
    /// The file whose symbols serve this range: an ELF file, or a substitute in the session.
    pub path: PathBuf,
    /// The file's GNU build-id, at most 20 bytes; empty if it is not known.
    pub build_id: Vec<u8>,
}

/// A record of a session's perf.data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRecord {
    /// A mapping appeared.
    Mapping(MappingRecord),
    /// A thread got a name.
    Comm {
        /// The time.
        time: MonotonicNs,
        /// The process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// The name came with an exec: the process has lost its mappings.
        exec: bool,
        /// The name.
        name: String,
    },
    /// A process or thread was forked.
    Fork {
        /// The time.
        time: MonotonicNs,
        /// The new process.
        pid: Pid,
        /// Its parent process.
        ppid: Pid,
        /// The new thread.
        tid: Tid,
        /// Its parent thread.
        ptid: Tid,
    },
    /// A process or thread ended.
    Exit {
        /// The time.
        time: MonotonicNs,
        /// The process.
        pid: Pid,
        /// Its parent process.
        ppid: Pid,
        /// The thread.
        tid: Tid,
        /// Its parent thread.
        ptid: Tid,
    },
    /// The kernel had no room for this many records.
    Lost {
        /// The time.
        time: MonotonicNs,
        /// The number of lost records.
        count: u64,
    },
    /// A sample.
    Sample(Sample),
}

/// A record of a session that is borrowed from its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordRef<'r> {
    /// A sample.
    Sample(Sample<&'r [Address]>),
    /// Any other record.
    Other(&'r SessionRecord),
}

impl RecordRef<'_> {
    /// Returns the time of the record.
    #[must_use]
    pub const fn time(&self) -> MonotonicNs {
        match self {
            Self::Sample(sample) => sample.time,
            Self::Other(record) => record.time(),
        }
    }

    /// Returns the record with memory of its own.
    #[must_use]
    pub fn into_owned(self) -> SessionRecord {
        match self {
            Self::Sample(sample) => SessionRecord::Sample(sample.to_owned()),
            Self::Other(record) => record.clone(),
        }
    }
}

impl SessionRecord {
    /// Returns the time of the record.
    #[must_use]
    pub const fn time(&self) -> MonotonicNs {
        match self {
            Self::Mapping(mapping) => mapping.time,
            Self::Sample(sample) => sample.time,
            Self::Comm { time, .. }
            | Self::Fork { time, .. }
            | Self::Exit { time, .. }
            | Self::Lost { time, .. } => *time,
        }
    }
}
