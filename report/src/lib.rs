//! The profile of a recording and its views.
//!
//! [`Profile::from_session`] reads a session once and makes of it a weighted call tree over
//! symbols, or over their lines; [`render`] shows a [`View`] of it as text, JSON or CSV.
//!
//! | question | file |
//! |---|---|
//! | which samples count | [`options`] |
//! | where do names come from, how many of them are wanted | [`names`] |
//! | which mapping held an address at that time | `address_space` |
//! | which file and which layer is behind a mapping | `image` |
//! | which file of this machine is the recorded one | `files` |
//! | what is an address called | `resolve`, `kernel` |
//! | what were an app's methods called before R8 or ProGuard | `renamed` |
//! | which symbols and lines are there | [`place`] |
//! | how much did each line, symbol, image or layer take | [`tree`] |
//! | how often was each method called | [`calls`] |
//! | which service does a process count for | [`services`] |
//! | what is known of the whole recording | [`profile`] |
//! | what would give more names, and where is it to be had | [`missing`] |
//! | in which frames were the threads, one by one | [`dim`] |
//! | which images and tasks are there | [`tables`] |
//! | what is shown, which rows does that have | [`view`], `rows`, `callgraph`, `dim_rows` |
//! | how do they look | [`mod@render`], `text`, `json`, `csv` |
//!
//! Nothing in a recording is trusted, and no file is that has another build-id than the
//! recorded one. What cannot be named is shown as `image+0xoffset`, and why is said at the foot
//! of the report ([`Profile::missing`], [`Profile::notes`]).
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod address_space;
mod callgraph;
pub mod calls;
mod csv;
pub mod dim;
mod dim_rows;
mod error;
mod files;
mod image;
mod json;
mod kernel;
pub mod missing;
pub mod names;
pub mod options;
pub mod place;
pub mod profile;
mod renamed;
pub mod render;
mod resolve;
mod rows;
pub mod services;
pub mod tables;
mod text;
pub mod tree;
pub mod view;

pub use calls::Calls;
pub use dim::Dim;
pub use error::{Error, Result};
pub use missing::{Lack, Missing};
pub use names::Names;
pub use options::{Options, Pattern};
pub use place::{Location, Place, PlaceId, Symbol, SymbolId};
pub use profile::Profile;
pub use render::{Format, render};
pub use services::ServiceId;
pub use tables::{Image, ImageId, Task, TaskId};
pub use tree::{CallTree, Key, Share, Weight};
pub use view::{By, Fit, PercentOf, Table, View};

/// The version of the JSON that [`render`] writes; its schema is `schema/report.schema.json`.
pub const JSON_VERSION: u32 = 1;
