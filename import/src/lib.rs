//! Recordings of other profilers as sessions, which every view and export of varid reads.
//!
//! [`import`] reads a file of perf, of simpleperf or of Java Flight Recorder, the text of `perf script` or folded stacks, and writes a
//! session folder.
//!
//! | question | file |
//! |---|---|
//! | what is imported, and where to | [`import`], [`ImportRequest`] |
//! | what was imported and what was not | [`ImportSummary`] |
//! | which formats are imported, and which one does a file have | [`ImportFormat`], `formats`, `start` |
//! | how is it read: from a file, a pipe, compressed | `input`, `zstd` |
//! | which files does a recording folder have | `recording_folder` |
//! | what is in perf.data | `perfdata` |
//! | what does simpleperf add to it | `simpleperf` |
//! | how is perf.data converted to a session | `convert`, `converter`, `chain` |
//! | how much was counted between two samples | `counters` |
//! | what is counted during the import | `tally` |
//! | which facts does a source have about its recording | `source_facts` |
//! | which names does a source have | `source_names` |
//! | which frames does a copy of the stack have | `dwarf`, `spaces` |
//! | what do the kernel's addresses mean | `kernel` |
//! | what is in a recording of Java Flight Recorder | `jfr` |
//! | how is it imported | `flight_recording`, `java_functions` |
//! | how is a text encoded | `encoding` |
//! | what is a file of another format | `other_format` |
//! | how are lines of `perf script` and folded stacks parsed | `lines`, `script_header`, `recorder_options`, `script_line`, `script_frame`, `folded_line` |
//! | which samples does `perf script` have | `script_samples` |
//! | how are these samples imported | `perf_script`, `folded` |
//! | how are names without addresses imported | `text`, `text_names` |
//! | which threads has a text, and which images have their processes | `text_tasks` |
//! | how many names of a source are kept | `limits` |
//! | which files name what the source names | `images` |
//! | which layer is a file of | `layers` |
//! | which files does the session list | `listed_files` |
//!
//! Nothing in a source is trusted. Memory is bounded by a multiple of the source's size, and for the records of perf.data by
//! [`perfdata::MAX_HELD`]. An invalid source is an error with its position. If readable samples precede the problem, it is a note of the
//! session instead.
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
mod flight_recording;
mod folded;
mod folded_line;
mod format;
mod formats;
mod images;
mod import;
mod input;
mod java_functions;
mod jfr;
mod kernel;
mod layers;
mod limits;
mod lines;
mod listed_files;
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
