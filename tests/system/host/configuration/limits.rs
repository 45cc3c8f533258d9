//! Tests that a session stays within the limits of its configuration, and reports it.

use anyhow::{Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::PoisonError;
use varid_tests::{Home, manifest, printed, skip_without_root};

use super::{NAMES, app, name};

/// The limit of perf.data in bytes.
const LIMIT: u64 = 1_000_000;
/// Far more than the size if the session ends in time. The size is checked twice a second.
const FAR_OVER: u64 = 16 * LIMIT;

/// Returns the processes with samples in the recording, by an unmodified perf, and the number of samples.
fn sampled(session: &Path) -> Result<(BTreeSet<u32>, usize)> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-F", "pid,event", "-i"]);
    let script = printed(perf.arg(session.join("perf.data")))?;
    let pids = script
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let pids = pids
        .map(|pid| Ok(pid.parse()?))
        .collect::<Result<Vec<_>>>()?;
    Ok((pids.iter().copied().collect(), pids.len()))
}

/// Checks that the recording and its report have a note.
fn told(home: &Home, session: &Path, note: &str) -> Result<()> {
    let notes = manifest(session)?["notes"].clone();
    let among = |notes: &Vec<Value>| notes.iter().any(|told| told == note);
    ensure!(notes.as_array().is_some_and(among), "{notes}");
    let report = printed(home.varid()?.arg("report").arg("-i").arg(session))?;
    ensure!(report.contains(note), "{report}");
    Ok(())
}

#[test]
fn a_recording_over_its_size_ends_complete_and_says_so() -> Result<()> {
    if skip_without_root("configuration") {
        return Ok(());
    }
    let _alone = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let home = Home::new()?;
    let mut math = app("math")?;
    let file = home.write(
        "varid.toml",
        &format!(
            "apps = [{:?}]\nfrequency = 9973\n[limits]\nsize = {LIMIT}\n",
            name("math")
        ),
    )?;
    let session = home.path("session");
    let mut start = home.varid()?;
    start.args(["start", "--config"]).arg(&file);
    printed(start.arg("-o").arg(&session))?;
    loop {
        let status = printed(home.varid()?.args(["status", "--json"]))?;
        let status: Value = serde_json::from_str(&status)?;
        let session = &status["sessions"][0];
        if session.is_null() {
            break;
        }
        let bytes = session["bytes"].as_u64();
        ensure!(bytes.is_some_and(|bytes| bytes < FAR_OVER), "{status}");
        ensure!(math.runs()?, "the app has ended before: {status}");
    }
    ensure!(math.runs()?, "the app has ended");
    let manifest = manifest(&session)?;
    ensure!(manifest["state"] == "complete", "{manifest}");
    let size = std::fs::metadata(session.join("perf.data"))?.len();
    ensure!((LIMIT..FAR_OVER).contains(&size), "{size} bytes");
    let (pids, samples) = sampled(&session)?;
    ensure!(pids == BTreeSet::from([math.pid()]), "{pids:?}");
    let counted = manifest["counts"]["samples"].as_u64();
    ensure!(counted == Some(samples as u64), "{samples}: {manifest}");
    let note = format!("perf.data has the {LIMIT} bytes of limits.size: the session ended");
    told(&home, &session, &note)
}

#[test]
fn children_that_come_when_there_are_as_many_as_may_be_are_not_recorded() -> Result<()> {
    if skip_without_root("configuration") {
        return Ok(());
    }
    let home = Home::new()?;
    let file = home.write("varid.toml", "[limits]\nprocesses = 1\n")?;
    let session = home.path("session");
    // It prints its pid and works. Its children work at the same time.
    let script = "work() { for ((i = 0; i < 50000; i++)); do :; done; }\necho $$\nwork & work & work\nwait\nwork";
    let mut record = home.varid()?;
    record.args(["record", "--config"]).arg(&file);
    record.arg("-o").arg(&session);
    let said = printed(record.args(["--", "bash", "-c", script]))?;
    let (pids, _) = sampled(&session)?;
    ensure!(pids == BTreeSet::from([said.trim().parse()?]), "{pids:?}");
    let note = "more than the 1 processes of limits.processes ran: those that came later were not recorded";
    told(&home, &session, note)?;

    // With a limit of three, all of them are recorded.
    home.write("varid.toml", "[limits]\nprocesses = 3\n")?;
    printed(&mut record)?;
    let (pids, _) = sampled(&session)?;
    ensure!(pids.len() == 3, "{pids:?}");
    let notes = manifest(&session)?["notes"].to_string();
    ensure!(!notes.contains("limits.processes"), "{notes}");
    Ok(())
}
