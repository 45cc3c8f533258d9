//! Recordings of other profilers as sessions, which every view and export of varid reads.
//!
//! [`import`] reads a file of perf, of simpleperf, the text of `perf script` or folded stacks and writes a session folder.
//!
//! | question | file |
//! |---|---|
//! | what is imported, and where to | [`import`], [`ImportRequest`] |
//! | what became of it | [`ImportSummary`] |
//! | which formats are imported, and which one does a file have | [`ImportFormat`], `formats`, `start` |
//! | how is it read: from a file, a pipe, compressed | `input`, `zstd` |
//! | which files has a recording that is a folder | `recording_folder` |
//! | what does perf.data say | `perfdata` |
//! | what does simpleperf add to it | `simpleperf` |
//! | how does perf.data become a session | `convert`, `converter`, `chain` |
//! | how much was counted between two samples | `counters` |
//! | what is counted meanwhile | `tally` |
//! | what does it say of its recording | `source_facts` |
//! | which names does it carry | `source_names` |
//! | which frames does a copy of the stack have | `dwarf`, `spaces` |
//! | what do the kernel's addresses mean | `kernel` |
//! | how is a text encoded | `encoding` |
//! | what is a file of another format | `other_format` |
//! | what do lines of `perf script` and folded stacks say | `lines`, `script_header`, `recorder_options`, `script_line`, `script_frame`, `folded_line` |
//! | which samples does `perf script` have | `script_samples` |
//! | how do they become a session | `perf_script`, `folded` |
//! | how do names without addresses become a session | `text`, `text_names` |
//! | which threads has a text, and which images have their processes | `text_tasks` |
//! | how much is kept of what a source names | `limits` |
//! | which files name what the source names | `images` |
//! | which layer is a file of | `layers` |
//!
//! Nothing in a source is trusted. What is held in memory is bounded by a multiple of the source, and for perf.data's records by
//! [`perfdata::MAX_HELD`]; a source that is wrong is an error that says where, or, behind readable samples, a note of the session.
//!
//! # Non-goals
//!
//! Sessions are read by `varid-recording`. perf.data of big-endian machines, and traces of AUX areas (Intel PT, CoreSight), are
//! not read.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(unreachable_pub))]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod chain;
mod convert;
mod converter;
mod counters;
mod dwarf;
mod encoding;
mod error;
mod folded;
mod folded_line;
mod format;
mod formats;
mod images;
mod import;
mod input;
mod kernel;
mod layers;
mod limits;
mod lines;
mod other_format;
mod perf_script;
pub mod perfdata;
mod recorder_options;
mod recording_folder;
mod request;
mod script_frame;
mod script_header;
mod script_line;
mod script_samples;
mod simpleperf;
mod source_facts;
mod source_names;
mod spaces;
mod start;
mod summary;
mod tally;
mod text;
mod text_names;
mod text_tasks;
mod zstd;

pub use error::{Error, Result};
pub use format::ImportFormat;
pub use import::import;
pub use input::Input;
pub use request::ImportRequest;
pub use summary::ImportSummary;
