//! Encodes records as bytes of perf.data.

use std::os::unix::ffi::OsStrExt;

use varid_model::{Address, Marker, MonotonicNs, Pid, Precision, Reason, Tid};

use crate::{
    format::{
        self, APPROXIMATE, CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER, FIRST_ID, MAX_BUILD_ID,
        MAX_COMM, MAX_FRAMES, MAX_PATH, RAW_SIZE, RAW_SIZE_WITH_FLAGS, RECORD_HEADER_SIZE, kind,
        misc,
    },
    mode,
    record::{CpuMode, MappingRecord, Sample, SessionRecord},
    remap::address_of,
};

/// The process, thread and time that `sample_id_all` appends to a record.
struct Id {
    pid: Pid,
    tid: Tid,
    time: MonotonicNs,
}

/// Appends one whole record. Its size is a multiple of eight.
pub fn record(out: &mut Vec<u8>, record: &SessionRecord) {
    match record {
        SessionRecord::Mapping(mapping) => self::mapping(out, mapping),
        SessionRecord::Comm {
            time,
            pid,
            tid,
            exec,
            name,
        } => {
            let flags = if *exec { misc::COMM_EXEC } else { 0 };
            framed(out, kind::COMM, flags, |out| {
                pair(out, pid.get(), tid.get());
                string(out, name.as_bytes(), MAX_COMM);
                sample_id(out, &id(*pid, *tid, *time));
            });
        }
        SessionRecord::Fork {
            time,
            pid,
            ppid,
            tid,
            ptid,
        }
        | SessionRecord::Exit {
            time,
            pid,
            ppid,
            tid,
            ptid,
        } => {
            let task = Task {
                pid: *pid,
                ppid: *ppid,
                tid: *tid,
                ptid: *ptid,
            };
            let kind = match record {
                SessionRecord::Exit { .. } => kind::EXIT,
                _ => kind::FORK,
            };
            task.encode(out, kind, *time);
        }
        SessionRecord::Lost { time, count } => framed(out, kind::LOST, 0, |out| {
            word(out, FIRST_ID);
            word(out, *count);
            sample_id(out, &id(Pid::default(), Tid::default(), *time));
        }),
        SessionRecord::Sample(sample) => self::sample(out, &sample.borrowed()),
    }
}

/// Appends `PERF_RECORD_FINISHED_ROUND`, which says that no later record is older than the previous round.
pub fn finished_round(out: &mut Vec<u8>) {
    framed(out, kind::FINISHED_ROUND, 0, |_| {});
}

/// Appends a record of the BUILD_ID feature (`struct perf_record_header_build_id`).
pub fn build_id(out: &mut Vec<u8>, mode: u16, pid: Pid, build_id: &[u8], path: &[u8]) {
    framed(out, 0, mode | misc::BUILD_ID_SIZE, |out| {
        out.extend(pid.get().to_le_bytes());
        let (bytes, len) = padded_build_id(build_id);
        out.extend(bytes);
        out.extend([len, 0, 0, 0]);
        string(out, path, MAX_PATH);
        // The fixed part is 28 bytes.
        out.resize(out.len().next_multiple_of(8), 0);
    });
}

const fn id(pid: Pid, tid: Tid, time: MonotonicNs) -> Id {
    Id { pid, tid, time }
}

/// Appends a record whose body is what `body` appends.
fn framed(out: &mut Vec<u8>, kind: u32, misc: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; RECORD_HEADER_SIZE]);
    body(out);
    let header = header(kind, misc, out.len().saturating_sub(start));
    let room = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut);
    if let Some(room) = room {
        *room = header.to_le_bytes();
    }
}

/// Returns the `struct perf_event_header` of a record of `size` bytes.
fn header(kind: u32, misc: u16, size: usize) -> u64 {
    // The limits in `format` bound strings, build-ids and frames, so the size always fits.
    let size = u16::try_from(size).unwrap_or(u16::MAX);
    u64::from(kind) | u64::from(misc) << 32 | u64::from(size) << 48
}

fn mapping(out: &mut Vec<u8>, mapping: &MappingRecord) {
    let mode = if mapping.kernel {
        misc::KERNEL
    } else {
        misc::USER
    };
    let has_build_id = !mapping.build_id.is_empty();
    let flags = if has_build_id { misc::MMAP_BUILD_ID } else { 0 };
    framed(out, kind::MMAP2, mode | flags, |out| {
        pair(out, mapping.pid.get(), mapping.tid.get());
        word(out, mapping.start.get());
        word(out, mapping.len);
        word(out, mapping.pgoff);
        // The field holds either the build-id or device, inode and generation. The latter have no use here.
        let (bytes, len) = padded_build_id(&mapping.build_id);
        out.extend([len, 0, 0, 0]);
        out.extend(bytes);
        let (prot, flags) = mode::recorded(mapping.mode);
        pair(out, prot, flags);
        string(out, mapping.path.as_os_str().as_bytes(), MAX_PATH);
        sample_id(out, &id(mapping.pid, mapping.tid, mapping.time));
    });
}

/// A thread and its parent.
struct Task {
    pid: Pid,
    ppid: Pid,
    tid: Tid,
    ptid: Tid,
}

impl Task {
    /// Appends the record of its fork or exit.
    fn encode(&self, out: &mut Vec<u8>, kind: u32, time: MonotonicNs) {
        framed(out, kind, 0, |out| {
            pair(out, self.pid.get(), self.ppid.get());
            pair(out, self.tid.get(), self.ptid.get());
            word(out, time.get());
            sample_id(out, &id(self.pid, self.tid, time));
        });
    }
}

/// A word as it lies in the file.
type Word = [u8; size_of::<u64>()];

/// The words of a sample's record before its chain.
const FIXED: usize = 9;
/// The most words of varid's own raw data.
const RAW: usize = 3;
/// The bytes of the size that precedes raw data.
const SIZE_OF_RAW: usize = 4;
/// The most bytes of a tracepoint's raw data: the kernel's `PERF_MAX_TRACE_SIZE`.
const MAX_TRACEPOINT: usize = 8_192;
/// The context entries of a chain.
const CONTEXTS: usize = 2;
/// The most words of a record.
const MAX_WORDS: usize = u16::MAX as usize / 8;

/// Appends the record of a sample that varid attributed. The sampled instruction is the first of its chain.
pub fn sample(out: &mut Vec<u8>, sample: &Sample<&[Address]>) {
    let chain = match sample.mode {
        CpuMode::Kernel => sample.kernel,
        CpuMode::User => sample.user,
    };
    let leaf = chain.first().copied().unwrap_or(sample.original_ip);
    let (raw, words) = own_raw(sample);
    sample_at(out, sample, leaf, raw.get(..words).unwrap_or(&raw));
}

/// Appends the record of a sample as another recorder has it. The chain of a precise event starts after the sampled instruction.
/// `tracepoint` is the raw data of a tracepoint's sample.
pub fn recorded_sample(out: &mut Vec<u8>, sample: &Sample<&[Address]>, tracepoint: Option<&[u8]>) {
    let (own, words) = own_raw(sample);
    let foreign = tracepoint.map(tracepoint_raw);
    let raw = foreign.as_deref().or(own.get(..words));
    sample_at(out, sample, sample.original_ip, raw.unwrap_or(&own));
}

/// Appends a sample's record: its chain with the contexts, then the words of its raw data. Frames beyond [`MAX_FRAMES`], or beyond the room
/// of such a record, are replaced by a marker.
fn sample_at(out: &mut Vec<u8>, sample: &Sample<&[Address]>, ip: Address, raw: &[u64]) {
    let mode = match sample.mode {
        CpuMode::Kernel => misc::KERNEL,
        CpuMode::User => misc::USER,
    };
    // Besides the contexts, the marker of the frames that are left out takes a word.
    let room = MAX_WORDS.saturating_sub(FIXED + CONTEXTS + 1);
    let max_frames = room.saturating_sub(raw.len()).min(MAX_FRAMES);
    let kernel = sample.kernel.get(..max_frames).unwrap_or(sample.kernel);
    let room = max_frames.saturating_sub(kernel.len());
    let (user, cut) = match sample.user.get(..room.saturating_sub(1)) {
        Some(user) if sample.user.len() > room => (user, true),
        _ => (sample.user, false),
    };
    let user_len = user.len().saturating_add(usize::from(cut));
    let with_context = |len: usize| len.saturating_add(usize::from(len > 0));
    let entries = with_context(kernel.len()).saturating_add(with_context(user_len));
    let size = entries
        .saturating_add(FIXED)
        .saturating_add(raw.len())
        .saturating_mul(size_of::<u64>());
    let fixed: [u64; FIXED] = [
        header(kind::SAMPLE, mode, size),
        format::id(sample.event),
        address(ip),
        u64::from(sample.pid.get()) | u64::from(sample.tid.get()) << 32,
        sample.time.get(),
        sample.original_ip.get(),
        u64::from(sample.cpu),
        sample.period.get(),
        entries as u64,
    ];
    let start = out.len();
    out.resize(start.saturating_add(size), 0);
    let (words, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut();
    let Some((head, mut room)) = words.split_first_chunk_mut() else {
        return;
    };
    *head = fixed.map(u64::to_le_bytes);
    if !kernel.is_empty() {
        room = put(room, [CONTEXT_KERNEL]);
        room = put(room, kernel.iter().copied().map(address));
    }
    if user_len > 0 {
        room = put(room, [CONTEXT_USER]);
        room = put(room, user.iter().copied().map(address));
    }
    if cut {
        room = put(room, [address_of(Marker::Reason(Reason::Truncated)).get()]);
    }
    put(room, raw.iter().copied());
}

/// Returns the words of varid's own raw data, with their size, and how many there are: the user id of the process, the VM's frame pointer,
/// and the flags if one is set.
fn own_raw(sample: &Sample<&[Address]>) -> ([u64; RAW], usize) {
    let (size, flags, words) = match sample.precision {
        Precision::Exact => (RAW_SIZE, 0, RAW.saturating_sub(1)),
        Precision::Approximate => (RAW_SIZE_WITH_FLAGS, APPROXIMATE, RAW),
    };
    let raw = [
        u64::from(size) | u64::from(sample.uid) << 32,
        sample.frame.map_or(0, Address::get),
        flags,
    ];
    (raw, words)
}

/// Returns the words of a tracepoint's raw data, with their size.
fn tracepoint_raw(content: &[u8]) -> Vec<u64> {
    let content = content.get(..MAX_TRACEPOINT).unwrap_or(content);
    let words = content.len().saturating_add(SIZE_OF_RAW).div_ceil(8);
    let size = words.saturating_mul(8).saturating_sub(SIZE_OF_RAW);
    let mut bytes = u32::try_from(size).unwrap_or(0).to_le_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(words.saturating_mul(8), 0);
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Writes words if there is room for them, and returns the room that is left.
fn put<I>(room: &mut [Word], words: I) -> &mut [Word]
where
    I: IntoIterator<Item = u64, IntoIter: ExactSizeIterator>,
{
    let words = words.into_iter();
    let (these, rest) = room.split_at_mut_checked(words.len()).unwrap_or_default();
    for (to, word) in these.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    rest
}

/// Limits an address so that no reader takes it for a context. No code lies in the last page.
fn address(ip: Address) -> u64 {
    ip.get().min(CONTEXT_MAX.saturating_sub(1))
}

fn sample_id(out: &mut Vec<u8>, id: &Id) {
    pair(out, id.pid.get(), id.tid.get());
    word(out, id.time.get());
    pair(out, 0, 0); // cpu
    word(out, FIRST_ID);
}

fn word(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn pair(out: &mut Vec<u8>, first: u32, second: u32) {
    out.extend(first.to_le_bytes());
    out.extend(second.to_le_bytes());
}

/// Appends a string up to its first NUL, of at most `max` bytes. It is ended by a NUL and padded to eight bytes.
fn string(out: &mut Vec<u8>, bytes: &[u8], max: usize) {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or(&[]);
    let text = text.get(..max.saturating_sub(1)).unwrap_or(text);
    out.extend(text);
    let padded = text.len().saturating_add(1).next_multiple_of(8);
    out.extend(std::iter::repeat_n(0, padded.saturating_sub(text.len())));
}

/// Pads a build-id with zeros to its full length, and returns it with the length it had.
fn padded_build_id(build_id: &[u8]) -> ([u8; MAX_BUILD_ID], u8) {
    let mut bytes = [0; MAX_BUILD_ID];
    for (to, from) in bytes.iter_mut().zip(build_id) {
        *to = *from;
    }
    let len = u8::try_from(build_id.len().min(MAX_BUILD_ID)).unwrap_or(0);
    (bytes, len)
}
