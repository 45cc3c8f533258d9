//! Compares imported sessions with their sources.

mod common;
mod hostile;
mod perf_data;
mod perf_file;
mod simpleperf;
mod simpleperf_file;
mod text;
