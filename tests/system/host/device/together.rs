//! Tests that two terminals can use one device at the same time.

use super::support::Device;
use anyhow::{Context, Result, ensure};
use std::process::{Child, Output, Stdio};
use varid_tests::skip_without_root;

/// Runs commands in parallel. Each must succeed. Returns their outputs.
fn at_once(device: &Device, commands: &[&[&str]]) -> Result<Vec<Output>> {
    let mut running: Vec<Child> = Vec::new();
    for words in commands {
        let mut varid = device.varid(words)?;
        running.push(
            varid
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?,
        );
    }
    let outputs = running.into_iter().map(Child::wait_with_output);
    let outputs = outputs.collect::<std::io::Result<Vec<_>>>()?;
    for output in &outputs {
        ensure!(output.status.success(), "{outputs:?}");
    }
    Ok(outputs)
}

#[test]
fn two_terminals_push_and_record_at_once() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let record: &[&str] = &["--adb", "record", "--", "sh", "-c", "echo $0"];
    at_once(&device, &[record, record, record])?;
    // Each session has arrived under its own name, and no temporary file of varid is left.
    let sessions = device.sessions()?;
    ensure!(
        sessions.len() == 3
            && sessions
                .iter()
                .all(|session| session["state"] == "complete"),
        "{sessions:?}"
    );
    let programs = std::fs::read_dir(device.at("tmp/varid/bin"))?;
    // The program, and the time of its last use.
    ensure!(programs.count() == 2, "a part of varid was left");
    // A process that does not exist leaves no folder.
    let folders =
        || Ok::<_, std::io::Error>(std::fs::read_dir(device.at("tmp/varid/sessions"))?.count());
    let before = folders()?;
    device.fails(&["--adb", "record", "--pid", "4194304"])?;
    ensure!(folders()? == before, "an empty session was left");
    Ok(())
}

#[test]
fn each_terminal_has_its_session_with_one_daemon() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let started = at_once(
        &device,
        &[
            &["--adb", "start", "--app", "org.example"],
            &["--adb", "start", "--app", "org.other"],
        ],
    )?;
    let status = device.ok(&["--adb", "status"])?;
    ensure!(
        status.contains("org.example") && status.contains("org.other"),
        "{status}"
    );
    let said = String::from_utf8(started[0].stdout.clone())?;
    println!("{said}");
    let document: serde_json::Value =
        serde_json::from_str(&device.ok(&["--adb", "status", "--json"])?)?;
    let all = document["sessions"].as_array().context("no list")?;
    let of = |app: &str| {
        let found = all
            .iter()
            .find(|session| session["target"].to_string().contains(app));
        found
            .and_then(|session| session["session"].as_str())
            .map(str::to_owned)
    };
    let first = of("org.example").with_context(|| document.to_string())?;
    device.ok(&["--adb", "stop", &first])?;
    let status = device.ok(&["--adb", "status"])?;
    ensure!(
        !status.contains("org.example") && status.contains("org.other"),
        "{status}"
    );
    device.ok(&["--adb", "stop"])?;
    ensure!(device.sessions()?.len() == 2, "both were not pulled");
    Ok(())
}
