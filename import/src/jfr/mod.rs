//! Reads recordings of Java Flight Recorder, of the JDK and of async-profiler.
//!
//! A recording is a sequence of chunks, each complete in itself: a header, records, and among the records the metadata, which
//! describes the fields of all others, and the constants that events refer to. Sources: `jdk.jfr.internal.consumer` of the JDK
//! (ChunkParser, MetadataReader, RecordingInput) and `flightRecorder.cpp` of async-profiler.
//!
//! | question | file |
//! |---|---|
//! | where are the chunks and their records | `chunk` |
//! | when was an event | `clock` |
//! | how are numbers and texts written | `cursor` |
//! | which fields does a record have | `metadata` |
//! | what do they contain | `value` |
//! | which threads, stacks and methods does a chunk have | `constants` |
//! | which events are samples, and of what weight | `event` |
//!
//! A chunk is read several times, one record after the other, so that only its constants and its samples are held.

mod chunk;
mod clock;
mod constants;
mod cursor;
mod event;
mod metadata;
mod value;

pub(crate) use chunk::{Chunk, Chunks, Damage, Stop, is_recording};
pub(crate) use constants::{Constants, JavaFrame, JavaThread, MethodNames};
pub(crate) use event::{EventKind, JavaSample, VmFacts, Weight};
