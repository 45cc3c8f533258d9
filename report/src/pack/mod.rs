//! How is a session one file, which another machine reads?
//!
//! A pack is a tar archive, compressed by gzip, of the session's folder, called `session` there. Beside the session's own files it has the
//! symbols of the recorded files that this machine has. What is read of a pack is not trusted: see [`unpack`].

mod read;
mod write;

pub use read::{PackError, is_pack, unpack};
pub use write::{Packed, pack};

/// The session's folder in a pack.
const FOLDER: &str = "session";
