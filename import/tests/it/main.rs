//! Do sessions of other profilers' recordings say what these say?

mod common;
mod hostile;
mod perf_data;
mod perf_file;
mod simpleperf;
mod simpleperf_file;
mod text;
