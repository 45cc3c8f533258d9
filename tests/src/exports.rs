//! Compares the methods that viewers of all exported formats show.

use crate::command::printed;
use crate::testbed::{skipped, testbed};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const FORMATS: [&str; 12] = [
    "folded",
    "flamegraph",
    "html",
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

/// Exports a session into a folder in all formats and as a JSON report, as expected by `exports.py`.
pub fn export_all(session: &Path, folder: &Path, options: &[&str], by: &str) -> Result<()> {
    for format in FORMATS {
        let mut varid = testbed()?.varid();
        varid.args(["export", "-f", format]).args(options);
        varid.arg("-i").arg(session);
        printed(varid.arg("-o").arg(folder.join(format)))?;
    }
    let mut report = testbed()?.varid();
    report.args(["report", "--by", by, "--format", "json"]);
    let report = printed(report.arg("-i").arg(session))?;
    Ok(std::fs::write(folder.join("report"), report)?)
}

/// Runs the viewers that are programs on the exports in a folder. They must name the heaviest methods that `exports.py`
/// has found. Returns the output of `callgrind_annotate`.
pub fn viewers_read(folder: &Path, found: &Value) -> Result<String> {
    let path = |name: &str| folder.join(name);
    let graph = printed(Command::new("dot").arg("-Tplain").arg(path("dot")))?;
    ensure!(graph.starts_with("graph "), "{graph}");
    let mut lint = Command::new("xmllint");
    printed(lint.arg("--noout").arg(path("flamegraph")))?;
    let mut annotate = Command::new("callgrind_annotate");
    let annotated = annotate
        .args(["--inclusive=yes", "--auto=no"])
        .arg(path("callgrind"))
        .output()?;
    let complaints = String::from_utf8_lossy(&annotated.stderr);
    ensure!(complaints.is_empty(), "callgrind_annotate: {complaints}");
    let annotated = String::from_utf8(annotated.stdout)?;
    names(&annotated, found)?;
    // These viewers are fetched: speedscope, and the public schemas of Perfetto and OpenTelemetry.
    // speedscope guesses stacks for callgrind's format, which has none, and fails for some graphs.
    let readable = ["speedscope", "folded", "chrome"].map(path);
    if let Some(printed) = script("speedscope", &readable)? {
        for part in printed.split("== ").skip(1) {
            names(part, found)?;
        }
        ensure!(
            printed.matches("== ").count() == readable.len(),
            "{printed}"
        );
    }
    if let Some(printed) = script("schemas", &[path("perfetto"), path("otlp")])? {
        names(&printed, found)?;
    }
    Ok(annotated)
}

/// Runs a script of `tests/exports`. None if its dependencies cannot be fetched here; the reason is printed.
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

/// Checks that a viewer's output names the heaviest methods. In a short recording the tenth may be one of many with a
/// few samples, which viewers omit by different rules. Therefore only methods with at least 4 % count, of which there
/// are at most 25.
fn names(printed: &str, found: &Value) -> Result<()> {
    let heaviest = found["heaviest"].as_object().context("no methods")?;
    let whole = found["whole"].as_f64().context("no sum")?;
    for (name, weight) in heaviest {
        if weight.as_f64().is_none_or(|weight| weight * 25.0 < whole) {
            continue;
        }
        // Viewers omit template arguments and parameters by different rules.
        let name = name.split(['<', '(']).next().unwrap_or(name);
        ensure!(printed.contains(name), "no {name} in\n{printed}");
    }
    Ok(())
}
