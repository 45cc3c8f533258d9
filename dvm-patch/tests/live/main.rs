//! dim in live processes, read from outside: tests of both halves of the tunnel.
#![cfg(test)] // for the switches of clippy.toml
#![allow(clippy::arithmetic_side_effects)]

mod art;
mod calls;
mod dalvik;
mod dim;
mod host;
mod shadowvm;
mod support;
