//! The session folder: the one writer and the one reader of a recording.
//!
//! A session is a folder with three parts: `perf.data`, in Linux perf's own file format, or `records.data`, its compact form, has the
//! attributed samples; `symbols/` has the
//! substitute ELF files that give names to those samples; `session.json` is the [`Manifest`]. Where something was counted exactly,
//! `contexts.data` has the [`Contexts`], and `call-order.data` perhaps the [`CallOrder`]. The daemon writes a session with [`SessionWriter`]. Reports and exports read it with
//! [`SessionReader`], while it grows, after a kill, or when it is complete.
//!
//! | question | file |
//! |---|---|
//! | which records are there | `record` |
//! | how is a mapping's mode written | `mode` |
//! | what was counted | `event` |
//! | what does a session say besides its records | [`manifest`] |
//! | what do the addresses of the remap range mean | [`remap`] |
//! | which calling contexts are there, and what was counted in them | `contexts` |
//! | in which order were they called | `call_order` |
//! | which instructions had the code that VMs have compiled | `compiled_code` |
//! | how are files of chunks framed | `chunks` |
//! | how are records coded in a twentieth of the bytes | `compact` |
//! | in which form are records, and how is that changed | `rewrite` |
//! | which files are there because of calls | `calls` |
//! | which file names a file's addresses if its path no longer leads to it | `kept_file` |
//! | which files may its folder hold | `session_files` |
//! | how may a file of its folder be called | `plain_name` |
//! | what was it asked for | `stored_request` |
//! | where was it recorded | [`host`] |
//! | how is it written, what survives a kill or a full disk | `writer` |
//! | how is it read, in which order | `reader`, `time_order` |
//! | what may be printed of it | [`terminal`] |
//!
//! ```
//! use varid_model::{Address, MonotonicNs, Period, Pid, Rate};
//! use varid_recording::*;
//!
//! # fn main() -> varid_recording::Result<()> {
//! # let parent = tempfile::tempdir().expect("a folder");
//! let folder = parent.path().join("session");
//! let event = EventDesc::new("cpu-clock", Rate::Frequency(997), 1, 0);
//! let target = SessionTarget {
//!     kind: TargetKind::All,
//!     value: String::new(),
//! };
//! let manifest = Manifest::new(event, SampleSource::Bpf, target, MonotonicNs::new(1_000));
//! let mut writer = SessionWriter::create(&folder, manifest)?;
//! let pid = Pid::new(42);
//! let sample = Sample {
//!     event: 0,
//!     time: MonotonicNs::new(2_000),
//!     pid,
//!     tid: pid.main_thread(),
//!     cpu: 0,
//!     period: Period::new(1_003_009),
//!     original_ip: Address::new(0x40_1000),
//!     interrupt: None,
//!     mode: CpuMode::User,
//!     uid: 1000,
//!     frame: None,
//!     precision: varid_model::Precision::Exact,
//!     kernel: vec![],
//!     user: vec![Address::new(0x40_1000), Address::new(0x40_2005)],
//! };
//! writer.write_sample(&sample.borrowed())?;
//! writer.finish()?;
//!
//! let session = SessionReader::open(&folder)?;
//! assert_eq!(session.manifest().state, SessionState::Complete);
//! let records = session.records()?.collect::<varid_recording::Result<Vec<_>>>()?;
//! assert_eq!(records, [SessionRecord::Sample(sample.clone())]);
//! // The function that called is looked up where it calls, before the place it returns to.
//! let lookups: Vec<_> = sample.user_frames().map(|frame| frame.lookup()).collect();
//! assert_eq!(lookups, [0x40_1000, 0x40_2004].map(Address::new));
//! # Ok(())
//! # }
//! ```
//!
//! # Non-goals
//!
//! Only recordings that varid wrote are read: one layout of attributes and samples. `varid-import` makes sessions of any other perf.data.
//! The `linux-perf-data` crate reads what is written here, as a test checks. It is not used for reading because it allocates what a file
//! claims and reports errors without offsets, and a recording is not trusted.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod call_order;
mod calls;
mod chunks;
mod compact;
mod compiled_code;
mod compression;
mod contexts;
mod copy;
mod data_section;
mod decode;
mod encode;
mod error;
mod event;
mod features;
mod format;
pub mod host;
mod kept_file;
pub mod manifest;
mod mode;
mod plain_name;
mod plain_records;
mod reader;
mod record;
mod recorded_file;
mod records;
mod regular;
pub mod remap;
mod rewrite;
mod session_files;
mod stored_request;
pub mod terminal;
mod writer;

pub use call_order::{
    CALL_ORDER_DATA, CallEvent, CallEvents, CallOrder, CallOrderThread, CallOrderWriter,
};
pub use calls::{CALLS_LOG, CALLS_TSV};
pub use compact::RECORDS_DATA;
pub use compiled_code::{
    COMPILED_CODE_DATA, CodeAtTime, MAX_CODE, RecordedCode, RecordedCodeId, RecordedCodeWriter,
    RecordedCodes,
};
pub use compression::{MAX_CHUNK, decompress};
pub use contexts::{
    CONTEXTS_DATA, ContextCount, ContextCounter, ContextMethod, ContextNode, ContextProcess,
    ContextSite, ContextTrace, ContextWriter, Contexts, CounterId, MAX_TRACE_PART, MethodId,
    NodeId, SiteId, SiteTarget, ThreadSwitch, TraceCompression,
};
pub use copy::{AddedCounter, Additions, copy_with_counters};
pub use error::{Error, Result};
pub use event::{EventDesc, EventUnit, SessionEvents};
pub use format::{DATA_SIZE_AT, head as perf_data_head};
pub use host::Host;
pub use kept_file::KeptFile;
pub use manifest::{
    ConfigurationChange, EstimatedCache, EstimatedMeasure, ImageKind, ImportedFrom, Manifest,
    Membership, SampleCounts, SampleSource, SessionImage, SessionState, SessionTarget, Tactic,
    TargetKind,
};
pub use plain_name::is_plain_name;
pub use reader::SessionReader;
pub use record::{
    CpuMode, MappingRecord, NO_UID, REMAP_BASE, REMAP_SIZE, RecordRef, Sample, SessionRecord,
};
pub use recorded_file::RecordedFile;
pub use records::Records;
pub use regular::open_regular;
pub use rewrite::{RecordsForm, Rewritten, rewrite};
pub use session_files::{is_session_file, session_files};
pub use stored_request::StoredRequest;
pub use varid_model::is_own_memory;
pub use writer::{
    BATCH, MAX_BACKLOG, Owner, RESERVE, SessionWriter, kept_file_of, may_hold, remove_session,
};

/// The name of the kernel's own samples inside a session folder, where they are kept.
pub const RAW_DATA: &str = "raw.data";

/// The name of the samples' file inside a session folder.
pub const PERF_DATA: &str = "perf.data";

/// The name of the manifest inside a session folder.
pub const SESSION_JSON: &str = "session.json";

/// The name of the folder of substitute ELF files inside a session folder.
pub const SYMBOLS: &str = "symbols";

/// The path of the archive of class files, relative to the session folder: those of Java methods whose bytecodes were counted.
pub const CLASSES_JAR: &str = "symbols/classes.jar";

/// The path of the archive of dex files, relative to the session folder: those of methods whose instructions were counted.
pub const DEX_ZIP: &str = "symbols/dex.zip";

/// The path of the ELF file for the remap range, relative to the session folder.
pub const REMAP_ELF: &str = "symbols/remap.elf";
