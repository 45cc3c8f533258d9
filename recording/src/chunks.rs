//! Files of chunks: a header, and then chunks that are appended and never changed.
//!
//! | question | file |
//! |---|---|
//! | how is a chunk framed | `frame` |
//! | how are numbers and texts encoded in it | `payload` |
//! | how are chunks read | `reader` |
//! | how are chunks appended | `chunk_file` |

mod chunk_file;
mod frame;
mod payload;
mod reader;

pub use chunk_file::ChunkFile;
#[cfg(test)]
pub use frame::{CHUNK_HEAD, ChunkHead, FILE_HEAD};
pub use frame::{FileHead, put_chunk};
pub use payload::{Payload, put_difference, put_number, put_text, put_thread};
pub use reader::{Chunk, Chunks};
