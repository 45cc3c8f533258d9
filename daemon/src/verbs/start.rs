//! `varid start`: starts a session that continues after this command.

use super::config::refused;
use crate::cli::{self, SessionArgs};
use crate::control::bring_up;
use crate::control::protocol::{Activity, Reply, Request, SessionStatus};
use crate::output;
use anyhow::{Context, bail};
use std::process::ExitCode;
use varid_sampler::ShimKind;
use varid_session::request::NO_TARGET;

/// Requests a session from the daemon, and prints the result.
pub fn run(args: &SessionArgs) -> anyhow::Result<ExitCode> {
    let mut request = args.request();
    let sampling = &mut request.sampling;
    for path in [&mut sampling.output, &mut sampling.config]
        .into_iter()
        .flatten()
    {
        // The daemon has another working folder.
        *path = std::path::absolute(&*path)
            .with_context(|| format!("cannot use {}", path.display()))?;
    }
    // The daemon reads it, too, but its errors are reported before a daemon is started.
    let configured = match request.read() {
        Ok(configured) => configured,
        Err(error) => return Ok(refused(&error)),
    };
    if configured.target().is_none() {
        cli::bad_usage("start", NO_TARGET);
    }
    let asks_for_perf = request.sampling.shim == Some(ShimKind::Perf);
    let request = Request::Start {
        target: request.target.into(),
        sampling: Box::new(request.sampling.into()),
    };
    match bring_up::ask(&request)? {
        Reply::Started(status) => output::text(&said(asks_for_perf, &status))?,
        other => bail!("the daemon answered something else: {other:?}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn said(asks_for_perf: bool, status: &SessionStatus) -> String {
    let rate = match (status.frequency, status.period) {
        (Some(hz), _) => format!("at {hz} Hz"),
        (_, Some(period)) => format!("every {period}"),
        (None, None) => String::new(),
    };
    let mut lines = format!("sampling {} {rate} ({})", status.event, status.source);
    if status.source == "perf" && !asks_for_perf {
        lines.push_str("; no shim in the kernel can be used, 'varid doctor' says why");
    }
    lines.push('\n');
    for note in &status.notes {
        lines.push_str(&format!("note: {note}\n"));
    }
    match status.state {
        Activity::Waiting => lines.push_str(&format!("waiting for {}\n", status.target)),
        _ => lines.push_str(&format!("profiling {}\n", status.target)),
    }
    lines.push_str(&format!("recording into {}\n", status.folder.display()));
    lines
}
