//! varid: a hardware-sampling vertical profiler for Android and Linux.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod asked;
mod attribution;
mod by_id;
mod cli;
mod clock;
mod config;
mod control;
#[cfg(feature = "host")]
mod device;
mod paths;
mod perf_abi;
mod process;
mod raw;
mod sampler;
mod session;
mod unwind;
mod verbs;

use clap::{CommandFactory, FromArgMatches};
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = cli::Cli::command().get_matches();
    let cli = match cli::Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    logging(cli.verbose, matches!(cli.verb, cli::Verb::Daemon { .. }));
    match run(cli, &matches) {
        Ok(code) => code,
        Err(error) => {
            verbs::out::failure(&error);
            ExitCode::FAILURE
        }
    }
}

/// Carries a verb out, on a device where one is named; `matches`: the command line as it was given.
fn run(cli: cli::Cli, matches: &clap::ArgMatches) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "host")]
    if cli.adb.is_some() {
        return device::run(&cli, matches);
    }
    #[cfg(not(feature = "host"))]
    let _ = matches;
    verbs::run(cli.verb)
}

/// To standard error; a daemon's messages are read later, so they say when.
fn logging(verbose: u8, daemon: bool) {
    let level = match verbose {
        0 => tracing::Level::INFO,
        1 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(level)
        // Said to standard error, too: where that is closed it would end the recording.
        .log_internal_errors(false)
        .with_target(false);
    if daemon {
        log.init();
    } else {
        log.without_time().init();
    }
}
