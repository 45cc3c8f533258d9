//! The configuration: the contents of `varid.toml`, and their meaning.
//!
//! | question | file |
//! |---|---|
//! | what can be configured | [`settings`] |
//! | how is it read, what is wrong with it and where | [`parse`], over `document` |
//! | how is it written | `write` |
//! | which methods does a list of patterns mean | [`methods`] |
//! | which processes does a name mean, what is a service | [`processes`] |
//! | how are times and sizes written | [`units`] |
//!
//! The module has no side effects. `request` reads the file, and `session::reload` reads it again after a change.

mod document;
pub mod methods;
mod parse;
pub mod processes;
pub mod settings;
pub mod units;
mod write;

pub use document::Problem;
pub use methods::{MethodFilter, MethodPattern, Verdict};
pub use parse::parse;
pub use processes::{BUILT_IN, ProcessPattern, built_in};
pub use settings::{Config, DURATIONS, FREQUENCIES, Limits, PERIODS, Settings, check_duration};
pub use write::to_toml;

/// Maximum size of a configuration, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;
