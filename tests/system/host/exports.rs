//! Do the viewers of all exported formats see the same methods with the same shares?

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tests::{
    App, Recording, judge, methods_by_perf, printed, record, skip_without_root, skipped, testbed,
};

const FORMATS: [&str; 11] = [
    "folded",
    "flamegraph",
    "pprof",
    "firefox",
    "speedscope",
    "jsonl",
    "callgrind",
    "dot",
    "chrome",
    "perfetto",
    "otlp",
];

/// Writes a recording in all formats into a folder, and its report in JSON.
fn export(recording: &Recording, folder: &Path, options: &[&str], by: &str) -> Result<()> {
    let session = recording.session();
    for format in FORMATS {
        let mut varid = testbed()?.varid();
        varid.args(["export", "-f", format]).args(options);
        varid.arg("-i").arg(&session);
        printed(varid.arg("-o").arg(folder.join(format)))?;
    }
    let mut report = testbed()?.varid();
    report.args(["report", "--by", by, "--format", "json"]);
    let report = printed(report.arg("-i").arg(&session))?;
    Ok(std::fs::write(folder.join("report"), report)?)
}

/// Runs a script of `tests/exports` with its arguments; none: what it needs cannot be fetched here, which is said.
fn script(name: &str, arguments: &[PathBuf]) -> Result<Option<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("exports/consumers.sh");
    let mut command = Command::new(script);
    let output = command
        .arg(testbed()?.release.join("../testbed/exports"))
        .arg(name)
        .args(arguments)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(77) {
        skipped(name, &said);
        return Ok(None);
    }
    ensure!(output.status.success(), "{name}: {said}");
    Ok(Some(String::from_utf8(output.stdout)?))
}

/// The total of the app's outermost method in a report in JSON, with commas between thousands.
fn cost_of_run(report: &Path) -> Result<String> {
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report)?)?;
    let rows = report["rows"].as_array().context("no rows")?;
    let run = rows.iter().filter(|row| {
        let symbol = row["symbol"].as_str();
        symbol == Some("org.example.scene.Main.run")
    });
    // The method's lines: a sample is in one of them.
    let total: u64 = run.filter_map(|row| row["total_period"].as_u64()).sum();
    let digits = total.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    Ok(String::from_utf8(groups.join(&b','))?)
}

/// What a viewer prints names these methods, which weigh most.
fn names(printed: &str, ten: &serde_json::Value) -> Result<()> {
    let ten = ten.as_object().context("no methods")?;
    for name in ten.keys() {
        // Viewers leave template arguments and parameters out, each in its own way.
        let name = name.split(['<', '(']).next().unwrap_or(name);
        ensure!(printed.contains(name), "no {name} in\n{printed}");
    }
    Ok(())
}

#[test]
fn all_formats_have_the_same_ten_methods_with_the_same_weights() -> Result<()> {
    if skip_without_root("exports") {
        return Ok(());
    }
    let recording = record(&App::new("scene", "run", 240)?, &["-F", "1999"])?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);

    let plain = ["--by-samples", "--no-inline", "--no-lines"];
    export(&recording, folder.path(), &plain, "symbol")?;
    let arguments = ["samples".into(), folder.path().to_owned()];
    let found = judge("exports.py", arguments)?;
    println!("exports: {found}");
    // perf has counted the app's own, too.
    let perf = methods_by_perf(&recording.session().join("perf.data"), &[])?;
    for (name, samples) in found["heaviest"].as_object().context("no methods")? {
        if name.starts_with("org.example.") {
            ensure!(perf.get(name) == samples.as_u64().as_ref(), "{perf:?}");
        }
    }

    export(&recording, folder.path(), &[], "line")?;
    let arguments = ["periods".into(), folder.path().to_owned()];
    let found = judge("exports.py", arguments)?;
    let ten = &found["heaviest"];
    // Viewers that are programs.
    let graph = printed(Command::new("dot").arg("-Tplain").arg(path("dot")))?;
    ensure!(graph.starts_with("graph "), "{graph}");
    printed(
        Command::new("xmllint")
            .arg("--noout")
            .arg(path("flamegraph")),
    )?;
    let mut annotate = Command::new("callgrind_annotate");
    let annotated = annotate
        .args(["--inclusive=yes", "--auto=no"])
        .arg(path("callgrind"))
        .output()?;
    let complaints = String::from_utf8_lossy(&annotated.stderr);
    ensure!(complaints.is_empty(), "callgrind_annotate: {complaints}");
    let annotated = String::from_utf8(annotated.stdout)?;
    names(&annotated, ten)?;
    let run = annotated.lines().find(|line| line.contains("Main.run "));
    let run = run.context("no Main.run")?;
    ensure!(run.contains(&cost_of_run(&path("report"))?), "{run}");
    // Those that are fetched: speedscope, and the public schemas of Perfetto and OpenTelemetry.
    let readable = ["speedscope", "folded", "chrome", "callgrind"].map(path);
    if let Some(printed) = script("speedscope", &readable)? {
        for part in printed.split("== ").skip(1) {
            names(part, ten)?;
        }
        ensure!(
            printed.matches("== ").count() == readable.len(),
            "{printed}"
        );
    }
    if let Some(printed) = script("schemas", &[path("perfetto"), path("otlp")])? {
        names(&printed, ten)?;
    }
    Ok(())
}
