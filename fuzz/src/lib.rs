//! Fuzz targets, and what they share: a bound on what they allocate, a session folder and a mapped file that hold the input, an import of it.

mod bounded;
mod import;
mod mapped;
mod session;
pub mod targets;

pub use bounded::{bounded, bounded_by};
pub use import::imported;
pub use mapped::MappedFile;
pub use session::{manifest, with_session};
