//! The daemon and its verbs as a user runs them: the built program, with its own folders.

mod faults;
mod life;
pub(crate) mod support;
mod verbs;
