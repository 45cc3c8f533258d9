//! The constants of perf.data that are perf's own, and not the kernel's.
//!
//! Sources: `tools/perf/Documentation/perf.data-file-format.txt`, `tools/lib/perf/include/perf/event.h` and `tools/perf/util/header.h`.

/// Size of `struct perf_file_header` in bytes: magic, size, attr_size, attrs, data, event_types, 256 feature bits.
pub const HEADER_SIZE: u64 = 104;

/// The first record kind of perf's own. Those of the kernel are lower.
pub const FIRST_KIND: u32 = 64;

/// `PERF_RECORD_HEADER_ATTR`: an event's attribute, in a pipe.
pub const HEADER_ATTR: u32 = 64;

/// `PERF_RECORD_HEADER_TRACING_DATA`: the format of tracepoints' raw data, in a pipe. It follows the record.
pub const HEADER_TRACING_DATA: u32 = 66;

/// `PERF_RECORD_HEADER_BUILD_ID`: a file's build-id.
pub const HEADER_BUILD_ID: u32 = 67;

/// `PERF_RECORD_FINISHED_ROUND`: later records are not older than those before the round.
pub const FINISHED_ROUND: u32 = 68;

/// `PERF_RECORD_AUXTRACE`: its data follows the record.
pub const AUXTRACE: u32 = 71;

/// `PERF_RECORD_HEADER_FEATURE`: a feature, in a pipe.
pub const HEADER_FEATURE: u32 = 80;

/// `PERF_RECORD_COMPRESSED`: whole records, as part of a zstd stream.
pub const COMPRESSED: u32 = 81;

/// `PERF_RECORD_COMPRESSED2`: the same, with the size in a separate field.
pub const COMPRESSED2: u32 = 83;

/// `PERF_RECORD_MISC_BUILD_ID_SIZE`: in build-id records, the byte after the build-id is its size.
pub const MISC_BUILD_ID_SIZE: u16 = 1 << 15;

/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: the samples were left out by a BPF program.
pub const MISC_LOST_SAMPLES_BPF: u16 = 1 << 15;

/// Bits of features (`HEADER_*`).
pub mod feature {
    /// `HEADER_TRACING_DATA`.
    pub const TRACING_DATA: u32 = 1;
    /// `HEADER_BUILD_ID`.
    pub const BUILD_ID: u32 = 2;
    /// `HEADER_HOSTNAME`.
    pub const HOSTNAME: u32 = 3;
    /// `HEADER_OSRELEASE`.
    pub const OSRELEASE: u32 = 4;
    /// `HEADER_VERSION`.
    pub const VERSION: u32 = 5;
    /// `HEADER_ARCH`.
    pub const ARCH: u32 = 6;
    /// `HEADER_NRCPUS`.
    pub const NRCPUS: u32 = 7;
    /// `HEADER_CMDLINE`.
    pub const CMDLINE: u32 = 11;
    /// `HEADER_EVENT_DESC`.
    pub const EVENT_DESC: u32 = 12;
    /// `HEADER_GROUP_DESC`.
    pub const GROUP_DESC: u32 = 17;
    /// `HEADER_SAMPLE_TIME`.
    pub const SAMPLE_TIME: u32 = 21;
    /// `HEADER_DIR_FORMAT`.
    pub const DIR_FORMAT: u32 = 24;
    /// `HEADER_COMPRESSED`.
    pub const COMPRESSED: u32 = 27;
}
