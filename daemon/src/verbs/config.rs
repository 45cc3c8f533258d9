//! `varid config`: what is wrong with a configuration, and what a session would be asked for.

use super::events::try_to_sample;
use super::out;
use crate::cli::{self, ConfigVerb, SamplingArgs, StartArgs};
use crate::config::{Problem, to_toml};
use crate::request::{self, ConfigError, Configured, SessionRequest};
use crate::sampler::event::pmu::Pmu;
use std::path::Path;
use std::process::ExitCode;

/// Bad usage.
const WRONG: u8 = 2;

/// Checks a file or shows what is asked for.
pub fn run(verb: ConfigVerb) -> anyhow::Result<ExitCode> {
    match verb {
        ConfigVerb::Check { here, file } => check(&file, here),
        ConfigVerb::Show(args) => show(&args),
    }
}

/// `here`: the file is this machine's.
fn check(file: &Path, here: bool) -> anyhow::Result<ExitCode> {
    let pmus = Pmu::all(Path::new("/"));
    let (read, is_written_right) = match request::read(file) {
        Ok(_) if here => (
            request::read_by(file, |event| try_to_sample(event, &pmus)),
            true,
        ),
        Ok(_) => (request::read_for(file, &pmus), true),
        wrong => (wrong, false),
    };
    let is_right = match read {
        Ok(_) => true,
        Err(ConfigError::Wrong { path, problems }) => {
            let is_note = is_written_right && !here;
            let note = if is_note { "note: " } else { "" };
            for Problem { line, column, what } in problems {
                out::message(&format!("{}:{line}:{column}: {note}{what}", path.display()));
            }
            is_note
        }
        Err(error) => return Ok(refused(&error)),
    };
    if !is_right {
        return Ok(ExitCode::from(WRONG));
    }
    out::text(&format!("{}: nothing is wrong\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &StartArgs) -> anyhow::Result<ExitCode> {
    let Configured { mut config, .. } =
        match SessionRequest::new(&args.target, &args.sampling, false).read() {
            Ok(configured) => configured,
            Err(error) => return Ok(refused(&error)),
        };
    config.rate = Some(SamplingArgs::rate(&config));
    config.stack = Some(config.stack.unwrap_or_default());
    config.tactic = Some(config.tactic.unwrap_or_default());
    if config.events.is_empty() {
        config.events = SamplingArgs::default_events(&config);
    }
    for pid in &args.target.pids {
        out::text(&format!(
            "# process {pid}: only the command line can name it\n"
        ))?;
    }
    out::text(&to_toml(&config))?;
    if args.target.spec(&config).is_none() {
        out::message(&format!("start would refuse it: {}", cli::NOBODY));
    }
    Ok(ExitCode::SUCCESS)
}

/// A configuration, or arguments, that nothing can be done with.
pub fn refused(error: &ConfigError) -> ExitCode {
    out::message(&format!("varid: {error}"));
    ExitCode::from(WRONG)
}
