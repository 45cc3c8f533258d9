//! What fuzz targets share: a bound on what they allocate, a session folder and a mapped file that hold the input.

mod bounded;
mod mapped;
mod session;

pub use bounded::{bounded, bounded_by};
pub use mapped::MappedFile;
pub use session::{manifest, with_session};
