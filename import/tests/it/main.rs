//! Compares imported sessions with their sources.
#![cfg(test)] // for the switches of clippy.toml
#![allow(clippy::arithmetic_side_effects)]

mod common;
mod hostile;
mod jfr;
mod jfr_file;
mod perf_data;
mod perf_file;
mod simpleperf;
mod simpleperf_file;
mod text;
