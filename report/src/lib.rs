//! The profile of a recording and its views.
//!
//! [`Profile::from_session`] reads a session once and makes tables of it: frames, stacks, tasks, and the weights of stacks in
//! each event; [`render`] writes a [`View`] of them as text, JSON or CSV; [`export`] writes
//! them for other viewers.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use varid_recording::{EventDesc, Manifest, SampleSource, SessionTarget, SessionWriter, TargetKind};
//! # let folder = std::env::temp_dir().join(format!("varid-report-example-{}", std::process::id()));
//! # let event = EventDesc::new("cpu-clock", varid_model::Rate::Frequency(997), 1, 0);
//! # let target = SessionTarget { kind: TargetKind::All, value: String::new() };
//! # SessionWriter::create(&folder, Manifest::new(event, SampleSource::Bpf, target, varid_model::MonotonicNs::ZERO))?.finish()?;
//! use varid_recording::SessionReader;
//! use varid_report::{OutputFormat, Options, Profile, View, render};
//!
//! let session = SessionReader::open(&folder)?;
//! let profile = Profile::from_session(&session, &Options::default())?;
//! render(&profile, &View::default(), OutputFormat::Text, &mut std::io::stdout())?;
//!
//! // The samples of each stack, with its frames from the leaf to the outermost.
//! let event = profile.event(None)?.event;
//! for row in profile.weights.sample_rows(event) {
//!     let frames = row.stack.into_iter().flat_map(|stack| profile.stacks.frames_of(stack));
//!     let symbols = frames.filter_map(|frame| profile.frames.symbol_of(frame));
//!     let names: Vec<&str> = symbols.map(|symbol| symbol.name.as_str()).collect();
//!     println!("{} {}", row.weight.samples(), names.join(" < "));
//! }
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! | question | file |
//! |---|---|
//! | what is known of the whole recording, how does a session become a profile | `profile`, `read` |
//! | which samples count | `options`, `stack_filter`, `code_filter`, `name_pattern`, `time_span` |
//! | which images, symbols, lines and frames are there | `frames` |
//! | which stacks of frames, which one is of a callchain | `stacks`, `stack_table_builder`, `callchains` |
//! | which threads, processes and services | `tasks` |
//! | how much does each stack weigh, in which counters | `weights` |
//! | what are counters called, which of them does a view show | `measures` |
//! | when was each sample taken | `samples` |
//! | what is counted exactly of calling contexts, in which stacks and at which instructions, what has called what | `context_weights`, `context_addresses`, `context_children` |
//! | how often did opcodes, call sites and methods run, how deep, in which contexts | `metrics` |
//! | what does a JVM do beside executing its program | `activity` |
//! | what has a session recorded so far, while it is recorded | `live` |
//! | in which frames were the threads, one by one | `sampled_frames` |
//! | what is an address called, where do names come from | `naming`, `name_options` |
//! | which files would give more names | `missing_files` |
//! | how much did each line, symbol, image or layer take | `shares` |
//! | what is shown of which event, what do its numbers count | `view`, `scope`, `unit` |
//! | how do stacks branch | `call_tree` |
//! | the report's first sentence | `finding` |
//! | which tables are there, which rows and columns do they have | `view`, `views`, `columns` |
//! | how do they look | `render` |
//! | how is a long name written in few columns | `short_name` |
//! | what differs between sessions, and is that chance | `diff` |
//! | how does a profile get into other viewers | `export` |
//! | how is a session one file, which another machine reads | `pack` |
//! | how are numbers hashed, how are entries of tables numbered | `fast_hash`, `index` |
//! | which instructions and source lines of one method have the samples | `annotate`, `sampled_addresses`, `compiled_samples` |
//!
//! Recordings are not trusted, and a file is not used if its build-id differs from the recorded one. An address without
//! a symbol is shown as `image+0x?`, and the foot of the report gives the reason ([`EventSummary::missing`],
//! [`RecordingSummary::notes`]).
//!
//! # Memory
//!
//! By default a profile has sums only. Its memory grows with the number of distinct entries: 8 bytes for each node of
//! the stacks' prefix tree; for each pair of a thread and a leaf's stack, 8 bytes and 16 for each event; and 64 bytes
//! for each address of a leaf. With [`Options::sample_table`] it also grows by 28 bytes for each sample. While the
//! profile is built, nodes and rows take some 20 to 40 bytes more each for the hash index. `examples/profile_memory.rs`
//! measures it.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod activity;
mod annotate;
mod call_tree;
mod callchains;
mod code_filter;
mod columns;
mod compiled_samples;
mod context_addresses;
mod context_children;
mod context_weights;
mod diff;
mod error;
mod export;
mod fast_hash;
mod finding;
mod frames;
mod index;
mod live;
mod measures;
mod metrics;
mod missing_files;
mod name_options;
mod name_pattern;
mod naming;
mod options;
mod pack;
mod plain;
mod precise;
mod profile;
mod read;
mod render;
mod sampled_addresses;
mod sampled_frames;
mod samples;
mod scope;
mod shares;
mod sheet;
mod short_name;
mod stack_filter;
mod stack_table_builder;
mod stacks;
mod tasks;
mod time_span;
mod unit;
mod view;
mod views;
mod weights;

pub use annotate::{
    AnnotateRequest, Annotated, AnnotatedCode, AnnotatedFile, AnnotatedInstruction, AnnotatedLine,
    AnnotatedMethod, Annotation, AnnotationText, Candidate, Candidates, CompiledInstruction,
    InlinedLine, MethodSource, annotate, visit_java_methods, write_annotation_json,
    write_annotation_text, write_candidates, write_candidates_json,
};
pub use code_filter::CodeFilter;
pub use columns::OutputFormat;
pub use context_addresses::CountedAddress;
pub use diff::{Diff, DiffView, Quantity, Side, Total, TotalChange};
pub use error::{Error, Result};
pub use export::{Content, ExportFormat, ExportRequest, Need, export};
pub use frames::{
    FrameId, FrameTable, ImageId, ProfileFrame, ProfileImage, ProfileSymbol, SourceLine, SymbolId,
};
pub use live::{
    Amount, HALF_LIFE, LiveMethod, LiveProfile, LiveShare, LiveSpan, LiveThread, Progress,
};
pub use measures::{Measure, MeasureOrigin};
pub use metrics::{
    ContextMetric, DepthMetric, MethodMetric, Metrics, MetricsSection, OpcodeMetric, SiteMetric,
    write_metrics_csv, write_metrics_text,
};
pub use missing_files::{MissingFile, MissingPart, shell_word};
pub use name_options::{NameOptions, ShownSignatures};
pub use name_pattern::{NamePattern, NamePatternError};
pub use naming::JavaMethod;
pub use options::{Options, Pattern, TaskFilter};
pub use pack::{PackError, Packed, is_pack, pack, unpack};
pub use profile::{EventSummary, Loss, Profile, RecordingSummary};
pub use render::render;
pub use sampled_addresses::SampledAddress;
pub use sampled_frames::{FrameMapping, SampledCode, SampledFrame, SampledThread};
pub use samples::{ProfileSample, SampleTable};
pub use shares::{SampleShare, Share};
pub use stack_filter::StackFilter;
pub use stacks::{StackId, StackTable, StackTree, Visit};
pub use tasks::{ExecutedProgram, ProgramId, ServiceId, Task, TaskId, TaskTable};
pub use time_span::{TimeSpan, TimeSpanError};
pub use view::{
    GroupBy, PercentOf, ReportTable, RowOrder, TableChoice, TableNeed, TextLimits, TreeDirection,
    View,
};
pub use weights::{
    EventId, MAX_COUNTERS, ProfileCounter, SampleWeight, Weight, WeightRow, WeightTable,
};

/// The version of the JSON that [`render`] writes for samples (`schema/report.schema.json`). [`Diff::render`] has its
/// own: `schema/diff.schema.json`.
pub const JSON_VERSION: u32 = 1;

/// The version of the JSON that [`render`] writes for named measures. Rows have them under `measures`.
pub const JSON_VERSION_OF_MEASURES: u32 = 2;
