//! Counts the leaf samples of each line of a method, by varid and by perf.

use crate::command::printed;
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Samples by line, such as `LU.java:33`.
pub type Lines = BTreeMap<String, u64>;

/// Returns the lines with self samples of a method, by `varid report --by line`.
pub fn lines_by_varid(session: &Path, method: &str) -> Result<Lines> {
    let mut report = testbed()?.varid();
    report.args(["report", "--by", "line", "--format", "json", "-i"]);
    let report: Value = serde_json::from_str(&printed(report.arg(session))?)?;
    let mut found = Lines::new();
    for row in report["rows"].as_array().context("no rows")? {
        let samples = row["self"].as_u64().context("no self")?;
        if row["symbol"] == method && samples > 0 {
            let file = row["file"].as_str().context("no file")?;
            let name = file.rsplit('/').next().unwrap_or(file);
            let line = format!("{name}:{}", row["line"]);
            *found.entry(line).or_default() += samples;
        }
    }
    Ok(found)
}

/// Returns the lines by `perf annotate`, from the samples beside them.
pub fn lines_by_perf_annotate(file: &Path, method: &str) -> Result<Lines> {
    let mut perf = Command::new("perf");
    perf.args(["annotate", "--stdio", "-l", "--show-nr-samples", "-i"])
        .arg(file)
        .args(["-s", method]);
    let printed = printed(&mut perf)?;
    let (mut found, mut place) = (Lines::new(), None);
    // `       : 125  ./org/example/LU.java:33`, followed by instructions: `    69 :   11be:   xchg   %ax,%ax`
    for line in printed.lines() {
        let Some((samples, rest)) = line.split_once(" :") else {
            continue;
        };
        match samples.trim() {
            "" if rest.contains(".java:") => place = rest.rsplit('/').next(),
            "" | "Percent |" => {}
            samples => {
                let samples: u64 = samples
                    .parse()
                    .with_context(|| format!("perf printed {line:?}"))?;
                if samples > 0 {
                    let place = place.with_context(|| format!("no line of {line:?}"))?;
                    *found.entry(place.to_owned()).or_default() += samples;
                }
            }
        }
    }
    Ok(found)
}

/// Returns the lines by `perf script`, from the leaf of each sample.
pub fn lines_by_perf_script(file: &Path, method: &str) -> Result<Lines> {
    let mut perf = Command::new("perf");
    // Without the filter, perf would look up lines of other symbols as well, which is slow.
    perf.args(["script", "-G", "-F", "ip,sym,srcline", "-S", method, "-i"]);
    let printed = printed(perf.arg(file))?;
    let mut found = Lines::new();
    let mut lines = printed.lines();
    while let Some(line) = lines.next() {
        // The line follows the symbol's line.
        if line.split_whitespace().nth(1) == Some(method) {
            let place = lines.next().context("no line of a symbol")?;
            *found.entry(place.trim().to_owned()).or_default() += 1;
        }
    }
    Ok(found)
}

/// Checks that `perf annotate` and `varid report` have the same lines and samples for a method.
pub fn perf_annotates_as_varid_reports(session: &Path, method: &str) -> Result<Lines> {
    let varid = lines_by_varid(session, method)?;
    let perf = lines_by_perf_annotate(&session.join("perf.data"), method)?;
    ensure!(
        perf == varid,
        "{method}: perf annotate says\n{perf:?}\nvarid report\n{varid:?}"
    );
    ensure!(
        varid.values().sum::<u64>() > 10,
        "too few samples in {method}: {varid:?}"
    );
    Ok(varid)
}
