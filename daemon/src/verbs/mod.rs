//! The verbs.

#[cfg(feature = "host")]
mod annotate;
#[cfg(feature = "host")]
mod calibrate;
#[cfg(feature = "host")]
mod compress;
mod config;
mod daemon;
#[cfg(feature = "host")]
mod diff;
mod doctor;
#[cfg(feature = "host")]
mod estimate;
mod events;
#[cfg(feature = "host")]
mod exact;
#[cfg(feature = "host")]
pub mod export;
#[cfg(feature = "host")]
mod help;
#[cfg(feature = "host")]
pub mod import;
pub mod launch;
#[cfg(feature = "host")]
mod metrics;
#[cfg(feature = "host")]
mod pack;
#[cfg(feature = "host")]
mod pager;
pub mod record;
#[cfg(feature = "host")]
pub mod report;
mod sessions;
mod start;
mod status;
mod stop;
#[cfg(feature = "host")]
pub mod symbols;
#[cfg(feature = "host")]
mod top;

use crate::cli::Verb;
use clap::ArgMatches;
use std::process::ExitCode;
use varid_vm::VmKinds;

/// Runs a verb. `matches`: the command line as given; `vms`: the kinds of VM that sessions detect.
pub fn run(
    verb: Verb,
    #[cfg_attr(not(feature = "host"), expect(unused_variables))] matches: &ArgMatches,
    vms: VmKinds,
) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Start(args) => start::run(&args),
        Verb::Stop { session } => stop::run(session),
        Verb::Status(format) => status::run(format),
        Verb::Sessions(format) => sessions::run(format),
        Verb::Record(args) => record::run(&args, vms),
        #[cfg(feature = "host")]
        Verb::Exact(args) => exact::run(args),
        #[cfg(feature = "host")]
        Verb::Calibrate(args) => calibrate::run(&args),
        #[cfg(feature = "host")]
        Verb::Pull { .. } => {
            crate::cli::bad_usage("pull", "'pull' copies from a device: --adb names it")
        }
        #[cfg(feature = "host")]
        Verb::Top(args) => top::run(&args, matches),
        #[cfg(feature = "host")]
        Verb::Report(args) => report::run(args),
        #[cfg(feature = "host")]
        Verb::Annotate(args) => annotate::run(*args),
        #[cfg(feature = "host")]
        Verb::Estimate(args) => estimate::run(&args),
        #[cfg(feature = "host")]
        Verb::Metrics(args) => metrics::run(&args),
        #[cfg(feature = "host")]
        Verb::Diff(args) => diff::run(*args),
        #[cfg(feature = "host")]
        Verb::Export(args) => export::run(args),
        #[cfg(feature = "host")]
        Verb::Import(args) => import::run(args),
        #[cfg(feature = "host")]
        Verb::Compress(args) => compress::run(&args),
        #[cfg(feature = "host")]
        Verb::Pack(args) => pack::run(&args),
        #[cfg(feature = "host")]
        Verb::Symbols(args) => symbols::run(&args),
        #[cfg(feature = "host")]
        Verb::Completions { shell } => help::completions(shell),
        #[cfg(feature = "host")]
        Verb::Complete { values } => help::candidates::run(values),
        #[cfg(feature = "host")]
        Verb::ManPages { folder } => help::man_pages(&folder),
        #[cfg(feature = "host")]
        Verb::Help(args) => help::run(&args),
        Verb::Config(verb) => config::run(verb),
        Verb::Events(format) => events::run(format),
        Verb::Doctor(format) => doctor::run(format),
        Verb::Daemon { background } => daemon::run(background, vms),
        Verb::Launch { fd, command } => launch::wait_and_become(fd, &command),
    }
}
