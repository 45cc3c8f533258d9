//! What the tests of several crates, the fuzz targets and their seeds make up.
//!
//! | question | file |
//! |---|---|
//! | how is a library compiled for a test | [`Compiled`] |
//! | which files hold dex files | [`containers`] |
//! | what does a HotSpot have in memory | [`hotspot`] |
#![forbid(unsafe_code)]

mod compiled;
pub mod containers;
pub mod hotspot;

pub use compiled::Compiled;
