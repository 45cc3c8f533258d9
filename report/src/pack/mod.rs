//! Packs a session into one file that other machines can read.
//!
//! A pack is a tar archive, compressed by gzip, with the session's folder under the name `session`. It also contains
//! the symbols of the recorded files that are on this machine. Packs are not trusted when they are read: see
//! [`unpack`].

mod read;
mod write;

pub use read::{PackError, is_pack, unpack};
pub use write::{Packed, pack};

/// The name of the session's folder in a pack.
const FOLDER: &str = "session";
