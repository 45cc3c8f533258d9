//! Do the halves of the tunnel meet? dim in live processes, read from outside.
#![cfg(test)] // for the switches of clippy.toml
#![allow(clippy::arithmetic_side_effects)]

mod art;
mod calls;
mod dalvik;
mod dim;
mod host;
mod shadowvm;
mod support;
