//! Files that describe a machine whose costs are estimated: TOML, whose values know their lines, and settings that replace values.
//!
//! What the values mean is a question of the crates that read them.
//!
//! | question | file |
//! |---|---|
//! | which values does a file have | `document` |
//! | where was a value set | `place` |
//! | what does the command line replace | `settings` |
//! | which file is meant by a name | `shipped` |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod document;
mod error;
mod place;
mod settings;
mod shipped;

pub use document::{Node, Table, Value, merge, parse};
pub use error::{Error, Result};
pub use place::{Origin, Place};
pub use settings::Setting;
pub use shipped::{Shipped, find, text_of};
