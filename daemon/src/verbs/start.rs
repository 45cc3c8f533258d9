//! `varid start`: starts a session that continues after this command.

use super::config::refused;
use super::record::COMPRESSED;
use crate::cli::{self, SessionArgs};
use crate::control::bring_up;
use crate::control::protocol::{Activity, Reply, Request, SessionStatus};
use crate::output;
use anyhow::{Context, bail};
use std::process::ExitCode;
use varid_sampler::ShimKind;
use varid_session::request::{NO_TARGET, RecordingRequest};

/// Requests a session from the daemon, and prints the result.
pub fn run(args: &SessionArgs) -> anyhow::Result<ExitCode> {
    let mut request = args.request();
    let paths = [&mut request.output.folder, &mut request.config];
    for path in paths.into_iter().flatten() {
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
    let start = Request::Start {
        recording: Box::new(request.clone()),
    };
    match bring_up::ask(&start)? {
        Reply::Started(status) => output::text(&said(&request, &status))?,
        other => bail!("the daemon answered something else: {other:?}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn said(request: &RecordingRequest, status: &SessionStatus) -> String {
    let asks_for_perf = request.sampling.shim == Some(ShimKind::Perf);
    let rate = match (status.sampling.frequency, status.sampling.period) {
        (Some(hz), _) => format!("at {hz} Hz"),
        (_, Some(period)) => format!("every {period}"),
        (None, None) => String::new(),
    };
    let mut lines = format!(
        "sampling {} {rate} ({})",
        status.sampling.event, status.sampling.source
    );
    if status.sampling.source == "perf" && !asks_for_perf {
        lines.push_str("; no shim in the kernel can be used, 'varid doctor' says why");
    }
    lines.push('\n');
    for note in &status.notes {
        lines.push_str(&format!("note: {note}\n"));
    }
    if request.output.compress {
        lines.push_str(&format!("note: {COMPRESSED}\n"));
    }
    match status.state {
        Activity::Waiting => lines.push_str(&format!("waiting for {}\n", status.target)),
        _ => lines.push_str(&format!("profiling {}\n", status.target)),
    }
    lines.push_str(&format!("recording into {}\n", status.folder.display()));
    lines
}
