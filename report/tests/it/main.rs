//! Checks reports against the contents of their sessions.
#![cfg(test)] // for the switches of clippy.toml
#![allow(missing_docs, clippy::arithmetic_side_effects)]

mod annotate;
mod common;
mod diff;
mod elsewhere;
mod exports;
mod lines;
mod live;
mod pack;
mod page;
mod sessions;
mod views;
