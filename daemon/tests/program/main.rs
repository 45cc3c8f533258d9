//! The program does what its command line specifies.
#![cfg(test)] // for the switches of clippy.toml
#![allow(missing_docs, clippy::arithmetic_side_effects)]

mod configuration;
mod control;
mod device;
mod outputs;
mod packs;
mod symbols;
