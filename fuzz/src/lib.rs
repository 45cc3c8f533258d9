//! Fuzz targets and their helpers: an allocation limit, and a session folder, a mapped file and an import for the
//! input.

mod bounded;
mod import;
mod mapped;
mod session;
pub mod targets;

pub use bounded::{bounded, bounded_by};
pub use import::imported;
pub use mapped::MappedFile;
pub use session::{finished_session, manifest, with_session};
