//! The display of `varid top`, and the keys that change it.
//!
//! It has no side effects, except that [`draw`](screen::draw) writes into a buffer. The program reads the sessions and owns the
//! terminal.
//!
//! | question | file |
//! |---|---|
//! | what is there to show at one moment | `snapshot` |
//! | what does the user want to see of it | `state` |
//! | which names are shown | `filter` |
//! | what does a key do | `keys` |
//! | which lines does the screen have | `screen` |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod filter;
mod keys;
mod screen;
mod snapshot;
mod state;

pub use keys::{Outcome, press};
pub use ratatui;
pub use screen::{draw, lines_of_text, page};
pub use snapshot::{
    Details, LineRow, MethodKey, MethodRow, Request, SessionRow, Snapshot, Subject, ThreadRow,
};
pub use state::{Choice, Order, State, Table};
