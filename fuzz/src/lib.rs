//! What fuzz targets share: a bound on what they allocate, and a session folder whose perf.data is the input.

mod bounded;
#[cfg(feature = "recording")]
mod session;

pub use bounded::{bounded, bounded_by};
#[cfg(feature = "recording")]
pub use session::{manifest, with_session};
