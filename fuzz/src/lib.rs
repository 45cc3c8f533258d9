//! What fuzz targets share: a bound on what they allocate, a session folder and a mapped file that hold the input.

mod bounded;
#[cfg(feature = "recording")]
mod mapped;
#[cfg(feature = "recording")]
mod session;

pub use bounded::{bounded, bounded_by};
#[cfg(feature = "recording")]
pub use mapped::MappedFile;
#[cfg(feature = "recording")]
pub use session::{manifest, with_session};
