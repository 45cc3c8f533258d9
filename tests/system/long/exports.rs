//! Tests that Go's pprof reads varid's exports with their labels, and that a server of OpenTelemetry's profiles service
//! accepts them.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use varid_tests::{App, printed, record, report_by_symbol, skip_without_root, skipped, testbed};

/// Runs `go tool pprof -top` with further options. It prints rows of FLAT FLAT% SUM% CUM CUM% NAME.
fn top(file: &Path, options: &[&str]) -> Result<Vec<(u64, String)>> {
    let mut pprof = Command::new("go");
    pprof.args(["tool", "pprof", "-top", "-unit=count", "-nodefraction=0"]);
    pprof.args(["-symbolize=none", "-sample_index=samples"]);
    let text = printed(pprof.args(options).arg(file))?;
    let (_, rows) = text.split_once("cum%\n").context("no table")?;
    let row = |line: &str| {
        let (flat, _) = line.trim().split_once(' ')?;
        let (_, name) = line
            .split_once("%  ")
            .map(|(_, rest)| rest.split_once("%  "))??;
        Some((flat.parse().ok()?, name.to_owned()))
    };
    Ok(rows.lines().filter_map(row).collect())
}

#[test]
fn pprof_has_the_methods_and_layers_of_the_report() -> Result<()> {
    if skip_without_root("exports") {
        return Ok(());
    }
    if Command::new("go").arg("version").output().is_err() {
        skipped("exports", "there is no go tool pprof: install golang-go");
        return Ok(());
    }
    let recording = record(&App::new("math", "run", 60)?, &["-F", "1999"])?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("profile.pb.gz");
    let mut varid = testbed()?.varid();
    varid.args(["export", "-f", "pprof", "--no-inline", "--no-lines", "-o"]);
    printed(varid.arg(&file).arg("-i").arg(recording.session()))?;

    let report = report_by_symbol(&recording.session())?;
    let rows = report["rows"].as_array().context("no rows")?;
    let found = top(&file, &[])?;
    let mut compared = 0;
    for row in rows.iter().take(30) {
        let name = row["symbol"].as_str().context("no name")?;
        // pprof omits text in angle brackets.
        if name.contains(['<', '(']) {
            continue;
        }
        let own = row["self"].as_u64().context("no count")?;
        let same = |(flat, found): &(u64, String)| found == name && *flat == own;
        ensure!(found.iter().any(same), "{name} {own}: {found:?}");
        compared += 1;
    }
    ensure!(compared > 10, "only {compared} methods");

    for layer in report["layers"].as_array().context("no layers")? {
        let name = layer["layer"].as_str().context("no name")?;
        let own = layer["self"].as_u64().context("no count")?;
        if own > 0 {
            let focus = format!("-tagfocus=layer={name}");
            let sum: u64 = top(&file, &[&focus])?.iter().map(|(flat, _)| flat).sum();
            ensure!(sum == own, "{name}: {sum}, not {own}");
        }
    }
    println!("pprof: {compared} methods and all layers as reported");
    Ok(())
}

#[test]
fn an_export_that_is_sent_over_grpc_has_the_ten_methods_of_the_report() -> Result<()> {
    if skip_without_root("otlp") {
        return Ok(());
    }
    let recording = record(&App::new("math", "run", 60)?, &["-F", "1999"])?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("profiles.binpb");
    let mut varid = testbed()?.varid();
    varid.args(["export", "-f", "otlp", "--by-samples", "--no-inline"]);
    varid.args(["--no-lines", "-o"]);
    printed(varid.arg(&file).arg("-i").arg(recording.session()))?;

    let consumers = Path::new(env!("CARGO_MANIFEST_DIR")).join("exports/consumers.sh");
    let fetched = testbed()?.release.join("../testbed/exports");
    let output = Command::new(consumers)
        .arg(fetched)
        .arg("grpc")
        .arg(&file)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        skipped("otlp", &said);
        return Ok(());
    }
    ensure!(output.status.success(), "{said}");
    let printed = String::from_utf8(output.stdout)?;
    let found: BTreeMap<&str, u64> = printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(weight, name)| Ok((name, weight.parse()?)))
        .collect::<Result<_>>()?;

    let report = report_by_symbol(&recording.session())?;
    let mut own: BTreeMap<&str, u64> = BTreeMap::new();
    for row in report["rows"].as_array().context("no rows")? {
        let name = row["symbol"].as_str().context("no name")?;
        *own.entry(name).or_default() += row["self"].as_u64().context("no count")?;
    }
    let mut own: Vec<_> = own.into_iter().collect();
    own.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    ensure!(own.len() > 10, "only {} methods", own.len());
    for (name, samples) in own.iter().take(10) {
        ensure!(
            found.get(name) == Some(samples),
            "{name}: {:?}, not {samples}, in\n{printed}",
            found.get(name)
        );
    }
    println!("otlp: the ten heaviest methods arrive over gRPC as reported");
    Ok(())
}
