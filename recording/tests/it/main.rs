//! Does a reader find in a session what its writer was given?
#![cfg(test)] // for the switches of clippy.toml
#![allow(missing_docs, clippy::arithmetic_side_effects)]

mod common;
mod compact;
mod compressed;
mod events;
mod perf;
mod session;
