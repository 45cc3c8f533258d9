//! Which records does a recording hold?

use std::path::PathBuf;

use varid_model::{Address, FrameAddress, Mode, MonotonicNs, Period, Pid, Precision, Tid};

/// Where the shim's own addresses start: methods without bytecode of their own and
/// markers live in this range of every profiled process, backed by `symbols/remap.elf`.
pub const REMAP_BASE: u64 = 0x6000_0000_0000;

/// Bytes of address space behind [`REMAP_BASE`].
pub const REMAP_SIZE: u64 = 0x100_0000;

/// Stands for a user id that is not known.
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
    /// Whose sample it is: the place of the event among the session's
    /// [`SessionEvents`](crate::SessionEvents). An event that is read with its leader's samples has samples
    /// of its own, of the same place and time.
    pub event: usize,
    /// When.
    pub time: MonotonicNs,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The CPU it was taken on.
    pub cpu: u32,
    /// Event counts since the last sample (nanoseconds for cpu-clock).
    pub period: Period,
    /// The instruction pointer that the PMU saw, before any remapping.
    pub original_ip: Address,
    /// Of a precise event of another recorder, where its interrupt came: the callchain was recorded from there on. The leaf is the sampled
    /// instruction; whether the function of the interrupt had called it, symbols tell. `None`: it came at the leaf.
    pub interrupt: Option<Address>,
    /// Kernel or user.
    pub mode: CpuMode,
    /// Whose process it is: the effective user id; [`NO_UID`] if it is not known.
    pub uid: u32,
    /// Where the frame of the innermost managed method lies: the VM's frame pointer; `None`: there is
    /// no such frame, or it has no address.
    pub frame: Option<Address>,
    /// How well the instruction of that method is known.
    pub precision: Precision,
    /// Kernel addresses, leaf first; callers are return addresses.
    pub kernel: Chain,
    /// User addresses, leaf first: native addresses, dex addresses (callers: the
    /// invoke's address + 1) and addresses of the remap range.
    pub user: Chain,
}

impl Sample {
    /// The same with borrowed callchains.
    #[must_use]
    pub fn borrowed(&self) -> Sample<&[Address]> {
        self.with_chains(&self.kernel, &self.user)
    }
}

impl Sample<&[Address]> {
    /// The same with callchains of its own.
    #[must_use]
    pub fn to_owned(&self) -> Sample {
        self.with_chains(self.kernel.to_vec(), self.user.to_vec())
    }
}

impl<Chain> Sample<Chain> {
    /// The same with other callchains.
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
    /// The kernel's frames, leaf first.
    pub fn kernel_frames(&self) -> impl ExactSizeIterator<Item = FrameAddress> {
        frames(self.kernel.as_ref())
    }

    /// The user's frames, leaf first. A leaf that entered the kernel is an [`Instruction`](FrameAddress::Instruction), too.
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
    /// When.
    pub time: MonotonicNs,
    /// The process; [`Pid::KERNEL`] for the kernel's own.
    pub pid: Pid,
    /// The thread that mapped it.
    pub tid: Tid,
    /// First address.
    pub start: Address,
    /// Bytes.
    pub len: u64,
    /// Offset of `start` in the file.
    pub pgoff: u64,
    /// The kernel's own mapping (`[kernel.kallsyms]_text` and modules).
    pub kernel: bool,
    /// What the process may do with it; none: it is not known, or no process has mapped it.
    pub mode: Option<Mode>,
    /// The file whose symbols serve this range: an ELF file, or a substitute in the session.
    pub path: PathBuf,
    /// The file's GNU build-id, at most 20 bytes; empty if unknown.
    pub build_id: Vec<u8>,
}

/// A record of a session's perf.data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRecord {
    /// A mapping appeared.
    Mapping(MappingRecord),
    /// A thread took a name.
    Comm {
        /// When.
        time: MonotonicNs,
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// The name came with an exec: the process's mappings are gone.
        exec: bool,
        /// The name.
        name: String,
    },
    /// A process or thread was forked.
    Fork {
        /// When.
        time: MonotonicNs,
        /// New process.
        pid: Pid,
        /// Its parent process.
        ppid: Pid,
        /// New thread.
        tid: Tid,
        /// Its parent thread.
        ptid: Tid,
    },
    /// A process or thread ended.
    Exit {
        /// When.
        time: MonotonicNs,
        /// Process.
        pid: Pid,
        /// Its parent process.
        ppid: Pid,
        /// Thread.
        tid: Tid,
        /// Its parent thread.
        ptid: Tid,
    },
    /// The kernel had no room for this many records.
    Lost {
        /// When.
        time: MonotonicNs,
        /// Records lost.
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
    /// When it was.
    #[must_use]
    pub const fn time(&self) -> MonotonicNs {
        match self {
            Self::Sample(sample) => sample.time,
            Self::Other(record) => record.time(),
        }
    }

    /// The same with memory of its own.
    #[must_use]
    pub fn into_owned(self) -> SessionRecord {
        match self {
            Self::Sample(sample) => SessionRecord::Sample(sample.to_owned()),
            Self::Other(record) => record.clone(),
        }
    }
}

impl SessionRecord {
    /// When it was.
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
