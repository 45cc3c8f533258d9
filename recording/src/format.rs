//! The one layout of perf.data that varid writes and reads.
//!
//! Sources: `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`. Everything is little-endian.

use crate::event::{EventDesc, SessionEvents};
use varid_model::Rate;
use varid_model::perf::{self, EventAttr};

pub use varid_model::perf::{
    PERF_CONTEXT_KERNEL as CONTEXT_KERNEL, PERF_CONTEXT_MAX as CONTEXT_MAX,
    PERF_CONTEXT_USER as CONTEXT_USER, RECORD_HEADER as RECORD_HEADER_SIZE, file::HEADER_SIZE,
};

/// "PERFILE2", little-endian.
pub const MAGIC: [u8; 8] = *b"PERFILE2";

/// The file offset of `perf_file_header.data.size`.
pub const DATA_SIZE_AT: u64 = 48;

/// The file offset of `perf_file_header.adds_features`.
pub const FEATURES_AT: u64 = 72;

/// The size of `perf_file_header.adds_features`, in bytes.
pub const FEATURE_BYTES: usize = 32;

/// The size of an attribute: the smallest that has the clock id, so that old versions of perf read it.
pub const ATTR_SIZE: u64 = perf::ATTR_SIZE as u64;

/// The size of an attribute in the file: the attribute and the section of its ids.
pub const FILE_ATTR_SIZE: u64 = ATTR_SIZE + 16;

/// The offset of the events' ids, directly after the header.
pub const IDS_AT: u64 = HEADER_SIZE;

/// Returns the offset of the attributes in a file of this many events.
pub const fn attrs_at(events: usize) -> u64 {
    IDS_AT.saturating_add((events as u64).saturating_mul(8))
}

/// Returns the offset of the first record in a file of this many events.
pub const fn data_at(events: usize) -> u64 {
    attrs_at(events).saturating_add((events as u64).saturating_mul(FILE_ATTR_SIZE))
}

/// The most events of a file that is read.
pub const MAX_EVENTS: u64 = 1_000;

/// The id of the first event. The others follow it in order. A sample carries its event's id.
pub const FIRST_ID: u64 = 1;

/// Returns the id of the event in this place.
pub const fn id(event: usize) -> u64 {
    FIRST_ID.saturating_add(event as u64)
}

/// The fields of a sample.
pub const SAMPLE_TYPE: u64 = OLD_SAMPLE_TYPE | perf::PERF_SAMPLE_RAW as u64;

/// The fields of a sample in older recordings, which have no raw data.
pub const OLD_SAMPLE_TYPE: u64 = (perf::PERF_SAMPLE_IP
    | perf::PERF_SAMPLE_TID
    | perf::PERF_SAMPLE_TIME
    | perf::PERF_SAMPLE_ADDR
    | perf::PERF_SAMPLE_CALLCHAIN
    | perf::PERF_SAMPLE_CPU
    | perf::PERF_SAMPLE_PERIOD
    | perf::PERF_SAMPLE_IDENTIFIER) as u64;

/// The size of a sample's raw data in bytes: a user id (u32) and a frame pointer (u64). Later versions may append to it.
pub const RAW_SIZE: u32 = 12;

/// The size with the flags (u64), which are only written if one is set.
pub const RAW_SIZE_WITH_FLAGS: u32 = RAW_SIZE + 8;

/// The flag of a sample whose innermost managed method has an [approximate](varid_model::Precision::Approximate) instruction.
pub const APPROXIMATE: u64 = 1;

/// The offset of `perf_event_attr.sample_type` in an attribute.
pub const SAMPLE_TYPE_AT: u64 = 24;

/// The kinds of records: the kernel's, and perf's own from 64 on.
pub mod kind {
    pub use varid_model::perf::file::{COMPRESSED, COMPRESSED2, FINISHED_ROUND};
    pub use varid_model::perf::{
        PERF_RECORD_COMM as COMM, PERF_RECORD_EXIT as EXIT, PERF_RECORD_FORK as FORK,
        PERF_RECORD_LOST as LOST, PERF_RECORD_MMAP2 as MMAP2, PERF_RECORD_SAMPLE as SAMPLE,
    };
}

/// The values of `misc` in a record's header.
pub mod misc {
    pub use varid_model::perf::file::MISC_BUILD_ID_SIZE as BUILD_ID_SIZE;
    pub use varid_model::perf::{
        PERF_RECORD_MISC_COMM_EXEC as COMM_EXEC, PERF_RECORD_MISC_CPUMODE_MASK as CPUMODE_MASK,
        PERF_RECORD_MISC_KERNEL as KERNEL, PERF_RECORD_MISC_MMAP_BUILD_ID as MMAP_BUILD_ID,
        PERF_RECORD_MISC_USER as USER,
    };
}

/// The clock of all times, by its number in clock_gettime(2).
const CLOCK_MONOTONIC: i32 = 1;

/// The most addresses of a sample. With the fixed fields and two contexts its size fits 16 bits.
pub const MAX_FRAMES: usize = 8_000;

/// The most bytes of a path in a record, its NUL included (PATH_MAX).
pub const MAX_PATH: usize = 4_096;

/// The most bytes of a thread's name in a record, its NUL included.
pub const MAX_COMM: usize = 256;

/// The size of the largest GNU build-id that a record holds, in bytes.
pub const MAX_BUILD_ID: usize = 20;

/// Returns the `struct perf_event_attr` of an event. If `tracks` is set, mappings, names, forks and exits are recorded with it.
pub fn attr(event: &EventDesc, tracks: bool) -> EventAttr {
    let mut attr = EventAttr {
        type_: event.kind,
        config: event.config,
        sample_type: SAMPLE_TYPE,
        clockid: CLOCK_MONOTONIC,
        ..EventAttr::default()
    };
    attr.sample_period = match event.rate {
        Rate::Frequency(hz) => {
            attr.set_freq(true);
            hz
        }
        Rate::Period(counts) => counts,
    };
    attr.set_sample_id_all(true);
    attr.set_use_clockid(true);
    attr.set_mmap(tracks);
    attr.set_mmap2(tracks);
    attr.set_mmap_data(tracks);
    attr.set_comm(tracks);
    attr.set_comm_exec(tracks);
    attr.set_task(tracks);
    attr.set_build_id(tracks);
    attr
}

/// Returns everything before the first record of a session's perf.data, for a file without records and features.
pub fn session_head(events: &SessionEvents) -> Vec<u8> {
    let attrs = events.iter().enumerate();
    let attrs: Vec<_> = attrs
        .map(|(place, event)| (attr(event, place == 0), vec![id(place)]))
        .collect();
    head(&attrs)
}

/// Returns everything before the first record of a perf.data file of these events, for a file without records and features. An event is its
/// attribute and its ids, of which it may have one for each CPU. The ids lie before the attributes.
#[must_use]
pub fn head(events: &[(EventAttr, Vec<u64>)]) -> Vec<u8> {
    let ids = events.iter().flat_map(|(_, ids)| ids);
    let ids: Vec<u8> = ids.flat_map(|id| id.to_le_bytes()).collect();
    let attrs_at = IDS_AT.saturating_add(ids.len() as u64);
    let attrs_len = FILE_ATTR_SIZE.saturating_mul(events.len() as u64);
    let words = [
        HEADER_SIZE,
        FILE_ATTR_SIZE,
        attrs_at,
        attrs_len,
        attrs_at.saturating_add(attrs_len), // data.offset
        0,                                  // data.size
        0,                                  // event_types.offset
        0,                                  // event_types.size
        0,
        0,
        0,
        0, // features
    ];
    let mut bytes = MAGIC.to_vec();
    bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
    bytes.extend(ids);
    let mut ids_at = IDS_AT;
    for (attr, ids) in events {
        let ids_len = (ids.len() as u64).saturating_mul(8);
        bytes.extend(attr.to_bytes());
        bytes.extend([ids_at, ids_len].into_iter().flat_map(u64::to_le_bytes));
        ids_at = ids_at.saturating_add(ids_len);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_start_where_the_head_ends() {
        let event = EventDesc::new("cpu-clock", Rate::Period(1_000_000), 1, 0);
        assert_eq!(attr(&event, true).to_bytes().len() as u64, ATTR_SIZE);
        for others in 0..3 {
            let events = SessionEvents {
                first: event.clone(),
                others: vec![event.clone(); others],
            };
            assert_eq!(session_head(&events).len() as u64, data_at(events.len()));
        }
    }

    #[test]
    fn each_event_of_a_file_has_its_own_ids() {
        let event = EventDesc::new("cpu-clock", Rate::Period(1_000_000), 1, 0);
        let event = |tracks, ids: &[u64]| (attr(&event, tracks), ids.to_vec());
        let bytes = head(&[event(true, &[7, 8]), event(false, &[9])]);
        let word = |at: u64| {
            let bytes = bytes[at as usize..][..8].try_into().unwrap();
            u64::from_le_bytes(bytes)
        };
        let attrs_at = HEADER_SIZE + 3 * 8;
        assert_eq!([word(24), word(32)], [attrs_at, 2 * FILE_ATTR_SIZE]);
        assert_eq!(word(40), bytes.len() as u64);
        for (place, expected) in [(0, [7, 8].as_slice()), (1, &[9])] {
            let entry = attrs_at + place * FILE_ATTR_SIZE;
            let (at, len) = (word(entry + ATTR_SIZE), word(entry + ATTR_SIZE + 8));
            let ids: Vec<_> = (at..at + len).step_by(8).map(word).collect();
            assert_eq!(ids, expected);
        }
    }
}
