//! `varid start`: a session that goes on when this command has ended.

use super::out;
use crate::cli::{self, StartArgs, TargetArgs};
use crate::control::bring_up;
use crate::control::protocol::{Activity, Reply, Request, SessionStatus};
use crate::sampler::ShimKind;
use anyhow::{Context, bail};
use std::process::ExitCode;

/// Asks the daemon for a session, and says what has become of it.
pub fn run(mut args: StartArgs) -> anyhow::Result<ExitCode> {
    if args.target.spec().is_none() {
        cli::bad_usage("nothing to profile: --app, --pid or --all is needed");
    }
    if let Some(output) = &mut args.sampling.output {
        // The daemon's working folder is another one.
        *output = std::path::absolute(&*output)
            .with_context(|| format!("cannot use {}", output.display()))?;
    }
    let wanted_perf = args.sampling.shim == Some(ShimKind::Perf);
    let request = Request::Start {
        target: args.target.clone(),
        sampling: Box::new(args.sampling),
    };
    match bring_up::ask(&request)? {
        Reply::Started(status) => out::text(&said(&args.target, wanted_perf, &status))?,
        other => bail!("the daemon answered something else: {other:?}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn said(target: &TargetArgs, wanted_perf: bool, status: &SessionStatus) -> String {
    let rate = match (status.frequency, status.period) {
        (Some(hz), _) => format!("at {hz} Hz"),
        (_, Some(period)) => format!("every {period}"),
        (None, None) => String::new(),
    };
    let mut lines = format!("sampling {} {rate} ({})", status.event, status.source);
    if status.source == "perf" && !wanted_perf {
        lines.push_str("; no shim in the kernel can be used, 'varid doctor' says why");
    }
    lines.push('\n');
    for note in &status.notes {
        lines.push_str(&format!("note: {note}\n"));
    }
    match (&target.app, status.state) {
        (Some(app), Activity::Waiting) => lines.push_str(&format!("waiting for {app}\n")),
        _ => lines.push_str(&format!("profiling {}\n", status.target)),
    }
    lines.push_str(&format!("recording into {}\n", status.folder.display()));
    lines
}
