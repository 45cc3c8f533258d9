//! Compares names with binutils and llvm, and tests that no name does harm.
#![cfg(test)] // for the switches of clippy.toml
#![allow(missing_docs, clippy::arithmetic_side_effects)]

mod hostile;
mod notation;
mod references;
