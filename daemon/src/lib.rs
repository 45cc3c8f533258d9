//! varid: a hardware-sampling vertical profiler for Android and Linux.
//!
//! The program's command line, verbs, control socket and devices. A program only needs to call [`main`], and can pass further kinds of
//! VM.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use varid_vm::VmKinds;
//!
//! fn main() -> ExitCode {
//!     varid::main(VmKinds::default())
//! }
//! ```

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod cli;
mod control;
#[cfg(feature = "host")]
mod device;
mod new_session;
mod output;
#[cfg(feature = "host")]
mod output_file;
#[cfg(feature = "host")]
mod packs;
mod paths;
mod priority;
mod sandbox;
mod sessions;
mod verbs;

use clap::FromArgMatches;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use varid_recording::terminal::printable;
use varid_vm::VmKinds;

/// The program: runs the command line of this process. `vms`: the kinds of VM that its sessions detect.
pub fn main(vms: VmKinds) -> ExitCode {
    if let Some(code) = varid_process::reader::serve_if_helper() {
        return code;
    }
    // Reaching the file size limit is an error of the write and must not end this program. A program that it becomes or starts has the
    // default action again.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let matches = cli::matches();
    let cli = match cli::Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    logging(&cli);
    let failed = failure_code(&cli.verb);
    run(cli, &matches, vms).unwrap_or_else(|error| {
        output::message(&format!("varid: {}", output::reason(error.as_ref())));
        let not_run = error.downcast_ref::<verbs::launch::CannotRun>();
        ExitCode::from(not_run.map_or(failed, |error| error.code))
    })
}

/// The exit code for an error of varid. If a command is recorded, 1 may be the command's, so it is 125, as with env(1).
fn failure_code(verb: &cli::Verb) -> u8 {
    match verb {
        cli::Verb::Record(args) if !args.command.is_empty() => 125,
        #[cfg(feature = "host")]
        cli::Verb::Exact(_) => 125,
        _ => 1,
    }
}

/// Runs a verb, on a device if one is named. `matches`: the command line as given.
fn run(cli: cli::Cli, matches: &clap::ArgMatches, vms: VmKinds) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "host")]
    if cli.adb.is_some() {
        return device::run(&cli, matches);
    }
    verbs::run(cli.verb, matches, vms)
}

/// Logs to standard error. A daemon's messages are read later, so they have a time.
fn logging(cli: &cli::Cli) {
    let level = match cli.verbose {
        0 if cli.quiet => tracing::Level::WARN,
        0 => tracing::Level::INFO,
        1 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let log = tracing_subscriber::fmt()
        .with_writer(|| Messages(io::stderr()))
        .with_ansi(io::stderr().is_terminal() && !no_color)
        .with_max_level(level)
        // Internal errors would also go to standard error. If that is closed, they would end the recording.
        .log_internal_errors(false)
        .with_target(false);
    if matches!(cli.verb, cli::Verb::Daemon { .. }) {
        log.init();
    } else {
        log.without_time().init();
    }
}

/// Standard error. A message is written in one piece. Escape sequences in messages are removed by the formatter; the colours are its
/// own.
struct Messages(io::Stderr);

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let shown = text
            .split('\x1b')
            .map(printable)
            .collect::<Vec<_>>()
            .join("\x1b");
        self.0.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
