//! The daemon and its verbs, as a user meets them: the built program, in places of its own.

mod faults;
mod life;
pub(crate) mod support;
mod verbs;
