//! Tests that a recording reaches the host completely, however the connection or the user ends it.

use super::support::{Device, WORK};
use anyhow::{Context, Result, ensure};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use varid_tests::{is_alive, skip_without_root, testbed};

#[test]
fn a_recording_comes_to_the_host_and_can_be_reported() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let mut words = vec!["--adb", "record", "-F", "4999", "--"];
    words.extend(WORK);
    let said = device.ok(&words)?;
    ensure!(said == format!("{}|{}\n", WORK[3], WORK[4]), "{said}");
    let report = device.ok(&["report", "--by", "image", "--format", "json"])?;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    ensure!(
        report["samples"].as_u64().context("no count")? > 0,
        "{report}"
    );
    ensure!(
        device.ok(&["report", "--by", "image"])?.contains("dash"),
        "{report}"
    );
    let sessions = device.sessions()?;
    ensure!(
        sessions.len() == 1 && sessions[0]["state"] == "complete",
        "{sessions:?}"
    );
    // The libraries that it refers to were pulled once, and are the recorded ones.
    let pulled = device.calls("pull");
    let kept = device.at("host/cache/device-symbols/.build-id");
    ensure!(std::fs::read_dir(&kept)?.count() > 0, "no library was kept");
    device.ok(&["--adb", "pull"])?;
    ensure!(
        device.sessions()?.len() == 1,
        "the same session is there twice"
    );
    let files = std::fs::read_dir(
        PathBuf::from(sessions[0]["folder"].as_str().context("folder")?).join("symbols"),
    )?;
    ensure!(
        device.calls("pull") == pulled + 2 + files.count(),
        "libraries were pulled again"
    );
    let named = device.at("named");
    device.ok(&["--adb", "pull", "-o", &named.display().to_string()])?;
    ensure!(named.join("perf.data").is_file(), "-o");
    Ok(())
}

#[test]
fn counted_and_logged_calls_come_along() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let shadow = &testbed()?.shadowvm;
    let (vm, dex) = (shadow.join("shadowvm"), shadow.join("shadow.dex"));
    let (vm, dex) = (vm.display().to_string(), dex.display().to_string());
    let mut words = vec!["--adb", "record", "--tactic", "method-invoke"];
    words.extend(["--log-calls", "--", &vm, "--dex", &dex, "--rounds", "1"]);
    device.ok(&words)?;
    let sessions = device.sessions()?;
    let folder = PathBuf::from(sessions[0]["folder"].as_str().context("folder")?);
    let calls = device.ok(&["report", "--by", "calls", "--format", "json"])?;
    let calls: serde_json::Value = serde_json::from_str(&calls)?;
    let rows = calls["rows"].as_array().context("no rows")?;
    let events = ["calls", "returns", "unwinds"];
    let counts = rows
        .iter()
        .flat_map(|row| events.map(|event| row["measures"][event]["self"].as_u64()));
    let counted: u64 = counts.flatten().sum();
    let mut logged = 0;
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("calls.log.")
        {
            logged += std::fs::read_to_string(entry.path())?.lines().count() as u64;
        }
    }
    ensure!(
        counted > 0 && logged == counted,
        "{logged} lines of {counted} events"
    );
    Ok(())
}

#[test]
fn a_daemon_there_records_on_when_the_cable_is_pulled() -> Result<()> {
    beside_a_busy_process(pull_the_cable)
}

fn pull_the_cable(device: &Device, pid: &str) -> Result<()> {
    device.ok(&["--adb", "start", "--pid", pid])?;
    std::fs::write(device.at("offline"), "")?;
    let said = device.fails(&["--adb", "status"])?;
    ensure!(
        said.contains("connection was lost: adb: device offline"),
        "{said}"
    );
    std::fs::remove_file(device.at("offline"))?;
    device.ok(&["--adb", "stop"])?;
    let sessions = device.sessions()?;
    ensure!(
        sessions.len() == 1 && sessions[0]["state"] == "complete",
        "{sessions:?}"
    );
    Ok(())
}

/// The timeout for events that normally take much less.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs an attempt on a device while a process computes. The attempt gets its pid.
fn beside_a_busy_process(attempt: fn(&Device, &str) -> Result<()>) -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let mut shell = Command::new("sh");
    let mut app = shell.args(["-c", "while :; do :; done"]).spawn()?;
    let outcome = attempt(&device, &app.id().to_string());
    app.kill()?;
    app.wait()?;
    outcome
}

#[test]
fn ctrl_c_is_passed_on_and_the_recording_comes() -> Result<()> {
    beside_a_busy_process(interrupt)
}

fn interrupt(device: &Device, pid: &str) -> Result<()> {
    let mut varid = recording(device, pid)?;
    let to = nix::unistd::Pid::from_raw(i32::try_from(varid.id())?);
    nix::sys::signal::kill(to, nix::sys::signal::Signal::SIGINT)?;
    let mut stderr = varid.stderr.take().context("piped")?;
    let (send, receive) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        send.send(stderr.read_to_string(&mut said).map(|_| said))
    });
    let Ok(said) = receive.recv_timeout(PATIENCE) else {
        varid.kill()?;
        varid.wait()?;
        anyhow::bail!("varid does not end by Ctrl-C");
    };
    reader.join().ok().context("the reader")??;
    let said = said?;
    let status = varid.wait()?;
    ensure!(
        status.success() && said.contains("pulled into"),
        "{status}: {said}"
    );
    ensure!(is_alive(pid), "the process was ended");
    Ok(())
}

/// Starts `varid --adb record` of a process, and waits until its file has samples.
fn recording(device: &Device, pid: &str) -> Result<Child> {
    let mut varid = device
        .varid(&["--adb", "record", "--pid", pid])?
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let there = device.at("tmp/varid/sessions");
    let records = || {
        let folders = std::fs::read_dir(&there).into_iter().flatten().flatten();
        let size = |folder: std::fs::DirEntry| folder.path().join("perf.data").metadata();
        folders
            .filter_map(|folder| size(folder).ok())
            .any(|file| file.len() > 10_000)
    };
    let begun = Instant::now();
    while !records() {
        ensure!(varid.try_wait()?.is_none(), "it ended by itself");
        if begun.elapsed() > PATIENCE {
            varid.kill()?;
            varid.wait()?;
            anyhow::bail!("nothing is recorded");
        }
        std::thread::yield_now();
    }
    Ok(varid)
}

#[test]
fn a_recording_whose_connection_ends_is_complete_and_can_be_pulled() -> Result<()> {
    beside_a_busy_process(vanish)
}

fn vanish(device: &Device, pid: &str) -> Result<()> {
    let mut varid = recording(device, pid)?;
    // This also ends the reader of varid's output on the device.
    varid.kill()?;
    varid.wait()?;
    drop(varid);
    let begun = Instant::now();
    loop {
        ensure!(begun.elapsed() < PATIENCE, "it records on without a reader");
        let said = device.ok(&["--adb", "sessions", "--json"])?;
        let document: serde_json::Value = serde_json::from_str(&said)?;
        match document["sessions"][0]["state"].as_str() {
            Some("complete") => break,
            Some("recording") => std::thread::yield_now(),
            other => anyhow::bail!("the session is {other:?}"),
        }
    }
    device.ok(&["--adb", "pull"])?;
    device.ok(&["report"])?;
    Ok(())
}
