//! Decodes the records of perf.data, the inverse of `encode`. The bytes are not trusted.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use varid_model::perf::{
    CallchainEntries, CommRecord, Fields, Header, KernelRecord, Malformed, MappedFile, Mmap2Record,
    PERF_TYPE_TRACEPOINT, SampleFields, SampleLayout, TaskRecord,
};
use varid_model::{Address, MonotonicNs, PrecisePlace, Precision};

use crate::{
    event::EventDesc,
    format::{
        APPROXIMATE, CONTEXT_KERNEL, CONTEXT_USER, FIRST_ID, OLD_SAMPLE_TYPE, RAW_SIZE,
        RAW_SIZE_WITH_FLAGS, misc,
    },
    mode,
    record::{CpuMode, MappingRecord, NO_UID, Sample, SessionRecord},
};

/// A range of a list of addresses.
#[derive(Debug, Clone, Copy)]
pub struct ChainSpan {
    start: usize,
    end: usize,
}

/// What the raw data of an event's samples holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawContent {
    /// What varid adds to its samples.
    Own,
    /// The tracepoint's fields, as the recorder has them.
    Tracepoint,
}

impl RawContent {
    /// Returns the content for an event of a session.
    pub const fn of(event: &EventDesc) -> Self {
        match event.kind {
            PERF_TYPE_TRACEPOINT => Self::Tracepoint,
            _ => Self::Own,
        }
    }
}

impl ChainSpan {
    const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns the callchain in its list.
    pub fn of(self, chains: &[Address]) -> &[Address] {
        chains.get(self.start..self.end).unwrap_or_default()
    }
}

/// Decodes a record that is not a sample, and returns it with its time. Returns `None` for kinds that no session needs.
///
/// `body` is everything after the record's header.
pub fn record(
    header: Header,
    body: &[u8],
) -> Result<Option<(MonotonicNs, Box<SessionRecord>)>, Malformed> {
    let Some((time, record)) = KernelRecord::parse(header.kind, header.misc, body)? else {
        return Ok(None);
    };
    let record = match record {
        KernelRecord::Mmap2(record) => SessionRecord::Mapping(mapping(header.misc, time, &record)),
        KernelRecord::Comm(CommRecord {
            pid,
            tid,
            exec,
            name,
        }) => SessionRecord::Comm {
            time,
            pid,
            tid,
            exec,
            name: String::from_utf8_lossy(name).into_owned(),
        },
        KernelRecord::Fork(TaskRecord {
            pid,
            ppid,
            tid,
            ptid,
            time,
        }) => SessionRecord::Fork {
            time,
            pid,
            ppid,
            tid,
            ptid,
        },
        KernelRecord::Exit(TaskRecord {
            pid,
            ppid,
            tid,
            ptid,
            time,
        }) => SessionRecord::Exit {
            time,
            pid,
            ppid,
            tid,
            ptid,
        },
        KernelRecord::Lost(count) => SessionRecord::Lost { time, count },
        KernelRecord::Throttle => return Ok(None),
    };
    Ok(Some((time, Box::new(record))))
}

fn mapping(record_misc: u16, time: MonotonicNs, record: &Mmap2Record<'_>) -> MappingRecord {
    let build_id = match record.file {
        MappedFile::BuildId(build_id) => build_id.to_vec(),
        MappedFile::Inode { .. } => Vec::new(),
    };
    MappingRecord {
        time,
        pid: record.pid,
        tid: record.tid,
        start: record.start,
        len: record.len,
        pgoff: record.pgoff,
        kernel: record_misc & misc::CPUMODE_MASK == misc::KERNEL,
        mode: mode::of_record(record.prot, record.flags),
        path: PathBuf::from(Path::new(OsStr::from_bytes(record.path))),
        build_id,
    }
}

/// The fields that samples have before their raw data.
const LAYOUT: SampleLayout = SampleLayout {
    sample_type: OLD_SAMPLE_TYPE as u32,
    registers: 0,
};

/// Decodes a sample of a file with these `events`. Its callchains are appended to `chains`.
///
/// `body` is everything after the record's header.
pub fn sample(
    header: Header,
    body: &[u8],
    events: &[RawContent],
    chains: &mut Vec<Address>,
) -> Result<Sample<ChainSpan>, Malformed> {
    let mut fields = Fields::new(body);
    let no_event = fields.malformed("a sample of none of the events");
    let event = fields
        .u64()?
        .checked_sub(FIRST_ID)
        .and_then(|place| usize::try_from(place).ok())
        .ok_or(no_event)?;
    let raw_content = *events.get(event).ok_or(no_event)?;
    let sample = SampleFields::parse(LAYOUT, &mut fields)?;
    let mode = match header.misc & misc::CPUMODE_MASK {
        misc::KERNEL => CpuMode::Kernel,
        _ => CpuMode::User,
    };
    let (kernel, user) = callchain(sample.callchain, chains)?;
    let recorded = SampleChains { kernel, user };
    let (SampleChains { kernel, user }, interrupt) = recorded.lead_with(sample.ip, mode, chains);
    let (uid, frame, precision) = match raw_content {
        RawContent::Own => raw(&mut fields)?,
        RawContent::Tracepoint => (NO_UID, Address::default(), Precision::Exact),
    };
    Ok(Sample {
        event,
        time: sample.time,
        pid: sample.pid,
        tid: sample.tid,
        cpu: sample.cpu,
        period: sample.period,
        original_ip: Address::new(sample.addr),
        interrupt,
        mode,
        uid,
        frame: Some(frame).filter(|frame| frame.get() != 0),
        precision,
        kernel,
        user,
    })
}

/// The callchains of a sample.
#[derive(Debug, Clone, Copy)]
struct SampleChains {
    kernel: ChainSpan,
    user: ChainSpan,
}

impl SampleChains {
    /// Makes the sampled instruction the leaf of the callchains. Also returns where the chain was recorded from if that may be another
    /// frame: see [`PrecisePlace`]. The frames of a kernel that was entered after the instruction are left out.
    fn lead_with(
        self,
        ip: Address,
        mode: CpuMode,
        chains: &mut Vec<Address>,
    ) -> (Self, Option<Address>) {
        let Self { kernel, user } = self;
        if kernel.is_empty() && user.is_empty() {
            return (self, None);
        }
        let own = match mode {
            CpuMode::Kernel => kernel,
            CpuMode::User => user,
        };
        // Symbols may show later that it is another function.
        let interrupt = own.of(chains).first().copied();
        let callers = own.of(chains).get(1..).unwrap_or_default();
        let place = PrecisePlace::of(ip, interrupt, callers, |_| None::<()>);
        let interrupt = interrupt.filter(|leaf| place == PrecisePlace::SameFrame && *leaf != ip);
        let own = match place {
            PrecisePlace::SameFrame => own,
            PrecisePlace::Caller => ChainSpan {
                start: own.start.saturating_add(1),
                ..own
            },
            PrecisePlace::Callee => {
                let start = chains.len();
                chains.push(ip);
                let end = chains.len();
                ChainSpan { start, end }
            }
        };
        if let Some(leaf) = chains.get_mut(own.start) {
            *leaf = ip;
        }
        let led = match mode {
            CpuMode::Kernel => Self { kernel: own, user },
            CpuMode::User => Self {
                kernel: ChainSpan { start: 0, end: 0 },
                user: own,
            },
        };
        (led, interrupt)
    }
}

/// Reads the user id, the frame pointer and the precision of the instruction in that frame, in recordings that have them.
fn raw(fields: &mut Fields<'_>) -> Result<(u32, Address, Precision), Malformed> {
    if fields.is_empty() {
        return Ok((NO_UID, Address::default(), Precision::Exact));
    }
    let short = fields.malformed("raw data without user id and frame pointer");
    let size = fields.u32()?;
    if size < RAW_SIZE {
        return Err(short);
    }
    let (uid, frame) = (fields.u32()?, Address::new(fields.u64()?));
    let flags = match size {
        ..RAW_SIZE_WITH_FLAGS => 0,
        _ => fields.u64()?,
    };
    let precision = match flags & APPROXIMATE {
        0 => Precision::Exact,
        _ => Precision::Approximate,
    };
    Ok((uid, frame, precision))
}

/// The offset of a sample's callchain in its body, after the fixed fields.
const CALLCHAIN_AT: usize = 56;

/// Splits a callchain into the kernel's addresses and the user's.
fn callchain(
    entries: CallchainEntries<'_>,
    chains: &mut Vec<Address>,
) -> Result<(ChainSpan, ChainSpan), Malformed> {
    let kernel = chains.len();
    let mut user = kernel;
    for (context, addresses) in entries.runs() {
        match context {
            Some(CONTEXT_KERNEL) => {
                let end = user.saturating_add(addresses.len());
                // Mostly there is nothing behind it yet.
                chains.splice(user..user, addresses);
                user = end;
            }
            Some(CONTEXT_USER) => chains.extend(addresses),
            _ => {
                return Err(Malformed {
                    at: CALLCHAIN_AT,
                    reason: "a callchain with an address outside the kernel's and the user's context",
                });
            }
        }
    }
    let span = |start, end| ChainSpan { start, end };
    Ok((span(kernel, user), span(user, chains.len())))
}
