//! The compact form of a session's records: records.data in the place of perf.data.
//!
//! Each record is coded by what those before it predict: callchains by the thread's last one and by what its frames called before, times by
//! the period, frame pointers by their callers. Decoded, the records are those of perf.data to the byte.
//!
//! | question | file |
//! |---|---|
//! | which chunks has the file | `chunk` |
//! | how are records coded | `records` |
//! | what predicts a sample | `samples` |
//! | which numbers has a sample's record | `sample` |
//! | which values followed a context before | `recent` |
//! | how are numbers coded | `numbers` |
//! | how are decisions coded | `range_coder` |

mod chunk;
mod numbers;
mod range_coder;
mod recent;
mod records;
mod sample;
mod samples;

pub use chunk::{ChunkKind, HEAD, MAX_RECORDS, Packer, Unpacker, feature, put_feature};

/// The name of the compact records inside a session folder.
pub const RECORDS_DATA: &str = "records.data";
