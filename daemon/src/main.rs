//! varid: a hardware-sampling vertical profiler for Android and Linux.

mod attribution;
mod cli;
mod paths;
mod process;
mod raw;
mod sampler;
mod session;
mod unwind;
mod verbs;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    logging(cli.verbose);
    match verbs::run(cli.verb) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("varid: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn logging(verbose: u8) {
    let level = match verbose {
        0 => tracing::Level::INFO,
        1 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false).without_time().init();
}
