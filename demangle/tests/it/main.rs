//! Are names those of binutils and llvm, and does no name do harm?
#![cfg(test)] // for the switches of clippy.toml
#![allow(missing_docs, clippy::arithmetic_side_effects)]

mod hostile;
mod notation;
mod references;
