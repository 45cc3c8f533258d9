//! What each verb does.

mod launch;
mod record;

use crate::cli::Verb;
use std::process::ExitCode;

/// Carries a verb out.
pub fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Record(args) => record::run(&args),
        Verb::Launch { fd, command } => launch::wait_and_become(fd, &command),
    }
}
