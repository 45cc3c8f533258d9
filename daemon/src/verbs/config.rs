//! `varid config`: the errors of a configuration, and what a session would record.

use super::events::try_to_sample;
use crate::cli::{ConfigVerb, SessionArgs};
use crate::output;
use std::path::Path;
use std::process::ExitCode;
use varid_sampler::event::pmu::Pmu;
use varid_sampler::interrupts::default_event;
use varid_session::config::{Problem, to_toml};
use varid_session::request::{self, ConfigError, NO_TARGET};

/// The exit code for wrong usage.
const WRONG: u8 = 2;

/// Checks a file, or shows what a session would record.
pub fn run(verb: ConfigVerb) -> anyhow::Result<ExitCode> {
    match verb {
        ConfigVerb::Check { here, file } => check(&file, here),
        ConfigVerb::Show(args) => show(&args),
    }
}

/// Checks a file. `here`: it is meant for this machine.
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
                output::message(&format!("{}:{line}:{column}: {note}{what}", path.display()));
            }
            is_note
        }
        Err(error) => return Ok(refused(&error)),
    };
    if !is_right {
        return Ok(ExitCode::from(WRONG));
    }
    output::text(&format!("{}: nothing is wrong\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &SessionArgs) -> anyhow::Result<ExitCode> {
    let configured = match args.request().read() {
        Ok(configured) => configured,
        Err(error) => return Ok(refused(&error)),
    };
    let has_target = configured.target().is_some();
    let mut config = configured.config;
    let settings = &mut config.settings;
    let rate = settings.rate_or_default();
    settings.rate = Some(rate);
    settings.stack = Some(settings.stack.unwrap_or_default());
    settings.tactic = Some(settings.tactic.unwrap_or_default());
    if settings.events.is_empty() {
        let (event, _) = default_event(rate, &Pmu::all(Path::new("/")));
        settings.events = vec![event.name];
    }
    for pid in &args.target.pids {
        output::text(&format!(
            "# process {pid}: only the command line can name it\n"
        ))?;
    }
    output::text(&to_toml(&config))?;
    if !has_target {
        output::message(&format!("start would refuse it: {}", NO_TARGET));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports a configuration, or arguments, that cannot be used.
pub fn refused(error: &ConfigError) -> ExitCode {
    output::message(&format!("varid: {error}"));
    ExitCode::from(WRONG)
}
