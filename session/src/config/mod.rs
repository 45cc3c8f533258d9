//! The configuration: what `varid.toml` may say, and what it means.
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
//! All of it is pure. The file is read by `request`, and again when it has changed by `session::reload`.

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

/// No configuration is longer.
pub const MAX_BYTES: u64 = 1 << 20;
