//! The one layout of perf.data that is written and read here.
//!
//! Sources: `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`. Everything is little-endian.

use crate::event::{EventDesc, Events};
use varid_model::Rate;

/// "PERFILE2", little-endian.
pub const MAGIC: [u8; 8] = *b"PERFILE2";

/// `struct perf_file_header`: magic, size, attr_size, attrs, data, event_types, 256 feature bits.
pub const HEADER_SIZE: u64 = 104;

/// Where `perf_file_header.data.size` lies.
pub const DATA_SIZE_AT: u64 = 48;

/// Where `perf_file_header.adds_features` lies.
pub const FEATURES_AT: u64 = 72;

/// Bytes of `perf_file_header.adds_features`.
pub const FEATURE_BYTES: usize = 32;

/// `PERF_ATTR_SIZE_VER5`: the smallest that has the clock id, so that old perfs read it.
pub const ATTR_SIZE: u64 = 112;

/// An attribute in the file: the attr and the section of its ids.
pub const FILE_ATTR_SIZE: u64 = ATTR_SIZE + 16;

/// Offset of the events' ids, straight after the header.
pub const IDS_AT: u64 = HEADER_SIZE;

/// Offset of the attributes of so many events.
pub const fn attrs_at(events: usize) -> u64 {
    IDS_AT.saturating_add((events as u64).saturating_mul(8))
}

/// Offset of the first record of a file of so many events.
pub const fn data_at(events: usize) -> u64 {
    attrs_at(events).saturating_add((events as u64).saturating_mul(FILE_ATTR_SIZE))
}

/// Most events of a file that is read.
pub const MAX_EVENTS: u64 = 1_000;

/// The id of the first event; the others count on from it. Samples carry their event's.
pub const FIRST_ID: u64 = 1;

/// The id of the event in this place.
pub const fn id(event: usize) -> u64 {
    FIRST_ID.saturating_add(event as u64)
}

/// `PERF_SAMPLE_` IP, TID, TIME, ADDR, CALLCHAIN, CPU, PERIOD, RAW and IDENTIFIER.
pub const SAMPLE_TYPE: u64 = OLD_SAMPLE_TYPE | 1 << 10;

/// The same without RAW: older recordings.
pub const OLD_SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 16;

/// Bytes of a sample's raw data: a user id (u32) and a frame pointer (u64). Later versions may append to it.
pub const RAW_SIZE: u32 = 12;

/// Where `perf_event_attr.sample_type` lies.
pub const SAMPLE_TYPE_AT: u64 = 24;

/// Bytes of what `sample_id_all` adds to every record but samples: pid, tid, time, cpu, id.
pub const SAMPLE_ID_SIZE: usize = 32;

/// Bytes of `struct perf_event_header`.
pub const RECORD_HEADER_SIZE: usize = 8;

/// `enum perf_event_type`, and from 64 on perf's own.
pub mod kind {
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const FINISHED_ROUND: u32 = 68;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// `PERF_RECORD_MISC_`.
pub mod misc {
    pub const CPUMODE_MASK: u16 = 7;
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    pub const COMM_EXEC: u16 = 1 << 13;
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// In build-id records: the byte behind the build-id is its size.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// `PERF_CONTEXT_KERNEL`: what follows in a callchain are kernel addresses.
pub const CONTEXT_KERNEL: u64 = 128u64.wrapping_neg();

/// `PERF_CONTEXT_USER`: what follows in a callchain are user addresses.
pub const CONTEXT_USER: u64 = 512u64.wrapping_neg();

/// `PERF_CONTEXT_MAX`: from here on an entry of a callchain is a context, not an address.
pub const CONTEXT_MAX: u64 = 4095u64.wrapping_neg();

/// Most addresses of one sample, so that its size fits 16 bits with the fixed fields
/// and two contexts.
pub const MAX_FRAMES: usize = 8_000;

/// Most bytes of a path in a record, its NUL included (PATH_MAX).
pub const MAX_PATH: usize = 4_096;

/// Most bytes of a thread's name in a record, its NUL included.
pub const MAX_COMM: usize = 256;

/// Bytes of the largest GNU build-id that a record holds.
pub const MAX_BUILD_ID: usize = 20;

/// `struct perf_event_attr` of an event; `tracks`: mappings, names, forks and exits are its.
pub fn attr(event: &EventDesc, tracks: bool) -> Vec<u8> {
    const MMAP: u64 = 1 << 8;
    const COMM: u64 = 1 << 9;
    const FREQ: u64 = 1 << 10;
    const TASK: u64 = 1 << 13;
    const MMAP_DATA: u64 = 1 << 17;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    const MMAP2: u64 = 1 << 23;
    const COMM_EXEC: u64 = 1 << 24;
    const USE_CLOCKID: u64 = 1 << 25;
    const BUILD_ID: u64 = 1 << 34;
    const CLOCK_MONOTONIC: u64 = 1;
    let (freq, rate) = match event.rate {
        Rate::Frequency(hz) => (FREQ, hz),
        Rate::Period(counts) => (0, counts),
    };
    let tracking = if tracks {
        MMAP | COMM | TASK | MMAP_DATA | MMAP2 | COMM_EXEC | BUILD_ID
    } else {
        0
    };
    let flags = SAMPLE_ID_ALL | USE_CLOCKID | tracking | freq;
    let words = [
        u64::from(event.kind) | ATTR_SIZE << 32,
        event.config,
        rate,
        SAMPLE_TYPE,
        0, // read_format
        flags,
        0,                     // wakeup_events, bp_type
        0,                     // config1
        0,                     // config2
        0,                     // branch_sample_type
        0,                     // sample_regs_user
        CLOCK_MONOTONIC << 32, // sample_stack_user, clockid
        0,                     // sample_regs_intr
        0,                     // aux_watermark, sample_max_stack
    ];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Everything before the first record, for a file without records and features.
pub fn head(events: &Events) -> Vec<u8> {
    let count = events.len();
    let mut bytes = MAGIC.to_vec();
    let words = [
        HEADER_SIZE,
        FILE_ATTR_SIZE,
        attrs_at(count),
        data_at(count).saturating_sub(attrs_at(count)),
        data_at(count),
        0, // data.size
        0, // event_types.offset
        0, // event_types.size
        0,
        0,
        0,
        0, // features
    ];
    let ids = (0..count).map(id);
    bytes.extend(words.into_iter().chain(ids).flat_map(u64::to_le_bytes));
    for (place, event) in events.iter().enumerate() {
        bytes.extend(attr(event, place == 0));
        let id_at = attrs_at(place); // as many ids lie before it
        bytes.extend([id_at, 8].into_iter().flat_map(u64::to_le_bytes));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_start_where_the_head_ends() {
        let event = EventDesc::new("cpu-clock", Rate::Period(1_000_000), 1, 0);
        assert_eq!(attr(&event, true).len() as u64, ATTR_SIZE);
        for further in 0..3 {
            let events = Events {
                first: event.clone(),
                further: vec![event.clone(); further],
            };
            assert_eq!(head(&events).len() as u64, data_at(events.len()));
        }
    }
}
