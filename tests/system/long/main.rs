//! Tests that are too slow for each change: other boards, the kernel module, separate boots.

mod armv7;
mod calibrate;
mod changed;
mod code;
mod compiled;
mod compiled_board;
mod determinism;
mod every_view;
mod exports;
mod html;
mod java_annotate;
mod java_board;
mod java_churn;
mod java_traces;
mod jvm;
mod make_board;
mod module;
mod pmu;
mod pointer_authentication;
mod prediction;
mod probes_board;
mod processors;
mod unwinding;
