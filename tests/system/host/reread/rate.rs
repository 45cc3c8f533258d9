//! Tests a rate that the kernel rejects while a session is running.

use super::{Changing, name, vm};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::Command;
use varid_tests::{skip_without_root, skipped};

/// Returns the nanoseconds between samples at a frequency in Hz.
const fn period(hz: u64) -> u64 {
    1_000_000_000 / hz
}

/// Parses the requests to the kernel: descriptor, value, result.
fn asked(text: &str) -> Result<Vec<(u64, u64, i64)>> {
    let words = text.lines().map(|line| {
        let mut words = line.split(' ');
        let mut word = || words.next().context("a word is missing");
        Ok((word()?.parse()?, word()?.parse()?, word()?.parse()?))
    });
    words.collect()
}

#[test]
fn a_refused_rate_changes_no_cpu_and_a_rate_above_the_limit_is_lowered_with_a_warning() -> Result<()>
{
    if skip_without_root("reread") {
        return Ok(());
    }
    let allowed = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate")?;
    let most: u64 = allowed.trim().parse()?;
    if most >= 1_000_000 {
        skipped(
            "reread",
            "this kernel allows any rate that can be asked for",
        );
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("periods.so");
    let mut cc = Command::new("cc");
    cc.args([
        "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
    ]);
    cc.arg(&library).arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/system/host/reread/periods.c"
    ));
    ensure!(cc.status()?.success(), "{cc:?}");
    let periods = folder.path().join("periods");
    let environment = [
        ("LD_PRELOAD", library.display().to_string()),
        ("PERIODS", periods.display().to_string()),
        ("REFUSED", period(1999).to_string()),
    ];
    let text = |hz: u64| {
        let apps = [name("rate")];
        format!("apps = {apps:?}\nevents = [\"cpu-clock\"]\nfrequency = {hz}\n")
    };
    let mut vm = vm("rate")?;
    let session = Changing::start_in(&environment, &["--shim", "bpf"], &text(499))?;
    session.records(&mut [&mut vm], 50, 1)?;
    let told = "from the next session on, stop and start one: frequency";
    session.change(&mut [&mut vm], &text(1999), told)?;
    let found = asked(&std::fs::read_to_string(&periods)?)?;
    let refused = found.iter().filter(|(.., result)| *result != 0);
    ensure!(refused.count() == 1, "{found:?}");
    let last: BTreeMap<u64, u64> = found.iter().map(|(fd, value, _)| (*fd, *value)).collect();
    let as_it_was = last.values().all(|value| *value == period(499));
    ensure!(!last.is_empty() && as_it_was, "{found:?}");

    session.records(&mut [&mut vm], 50, 1)?;
    session.change(&mut [&mut vm], &text(1_000_000), "changed: frequency")?;
    let manifest = session.stop()?;
    let changes = &manifest["changes"];
    ensure!(
        changes[0]["waiting"] == json!(["frequency"]) && changes[0]["changed"].is_null(),
        "{changes}"
    );
    ensure!(changes[1]["changed"] == json!(["frequency"]), "{changes}");
    let notes = &manifest["notes"];
    let lowered = notes.as_array().into_iter().flatten().any(|note| {
        let note = note.as_str().unwrap_or_default();
        note.starts_with("the kernel allows ") && note.contains(" CPU, not 1000000: ")
    });
    ensure!(lowered, "{notes}");
    Ok(())
}
