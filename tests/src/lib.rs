//! Helpers of the system tests: the programs under test, recordings of real runs, and oracles.
//!
//! An oracle (`oracle/`, Python) uses no crate of varid, and does not trust any result of varid.

mod app;
mod board;
mod changed_libart;
mod code;
mod command;
mod compile;
mod contexts;
mod corpus;
mod exports;
mod home;
mod java;
mod jit_log;
mod libart;
mod lines;
mod methods;
mod mode;
mod oracle;
mod per_sample;
mod process;
mod release;
mod scale;
mod session;
mod testbed;
mod threads;
mod trace;

pub use app::App;
pub use board::{
    Board, BoardCode, CompiledApp, Processor, board, board_of, board_with_java, board_with_module,
    run_on_board, run_on_other_board,
};
pub use changed_libart::ChangedLibart;
pub use code::{Code, DexFormat};
pub use command::printed;
pub use compile::compile;
pub use contexts::counter_sums;
pub use corpus::{assembled_dex_files, dex_files, fetched_dex_files};
pub use exports::{export_all, viewers_read};
pub use home::{Home, Running, manifest};
pub use java::{
    GENERATOR_OPTIONS, JAVA_PACKAGE, JDK, compile_agent, compile_class, compile_generator, has_jdk,
    java_classes, java_homes, javac,
};
pub use jit_log::JitLog;
pub use libart::{Libart, Says};
pub use lines::{lines_by_perf_script, perf_annotates_as_varid_reports};
pub use methods::{
    MATH, Methods, PERF_REPORT, has_all_of_math, methods_by_perf, methods_by_varid, methods_in,
    printed_by_perf, report_by_symbol, report_with, row_of,
};
pub use mode::{Source, Stack, every_mode_is_right};
pub use oracle::{judge, judge_in, oracle};
pub use per_sample::{
    MOST_RUNS, SampleCounts, interpreted_workloads, judge_art, judge_runs_in_art,
};
pub use process::{is_alive, is_stopped, ticks};
pub use release::Release;
pub use scale::{Scale, scale};
pub use session::{Recording, attach, attach_to, beside_raw, processes_noted, record, sample};
pub use testbed::{Testbed, skip_without_root, skipped, testbed};
pub use threads::on_threads;
