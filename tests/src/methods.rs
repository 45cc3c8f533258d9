//! How many samples has each of the app's methods as leaf, by varid and by perf?

use crate::testbed::testbed;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Samples of each of the app's methods as leaf.
pub type Methods = BTreeMap<String, u64>;

/// `perf report`'s arguments before the file: samples and symbols, separated by `|`.
pub const PERF_REPORT: [&str; 11] = [
    "report",
    "--stdio",
    "--no-children",
    "-g",
    "none",
    "-n",
    "-t",
    "|",
    "--sort",
    "symbol",
    "-i",
];

/// What `perf report` with [`PERF_REPORT`] printed.
pub fn printed_by_perf(printed: &str) -> Result<Methods> {
    let mut found = Methods::new();
    for line in printed.lines().filter(|line| line.contains("org.example.")) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, samples, symbol, ..] = fields[..] else {
            bail!("perf printed {line:?}")
        };
        // [.] says that it is in user space.
        let symbol = symbol.split_once(' ').context("no symbol")?.1.trim();
        *found.entry(symbol.to_owned()).or_default() += samples.parse::<u64>()?;
    }
    Ok(found)
}

/// `perf report` of a recording, with further options.
pub fn methods_by_perf(file: &Path, options: &[&str]) -> Result<Methods> {
    let mut perf = Command::new("perf");
    perf.args(PERF_REPORT).arg(file).args(options);
    let output = perf.output().context("perf")?;
    ensure!(
        output.status.success(),
        "{perf:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    printed_by_perf(&String::from_utf8_lossy(&output.stdout))
}

/// `varid report`: self of each symbol.
pub fn methods_by_varid(session: &Path) -> Result<Methods> {
    let mut report = testbed()?.varid();
    report
        .args(["report", "--by", "symbol", "--format", "json", "-i"])
        .arg(session);
    let output = report.output()?;
    ensure!(
        output.status.success(),
        "{report:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let mut found = Methods::new();
    for row in report["rows"].as_array().context("no rows")? {
        let symbol = row["symbol"].as_str().unwrap_or("");
        let samples = row["self"].as_u64().context("no self")?;
        if symbol.starts_with("org.example.") && samples > 0 {
            *found.entry(symbol.to_owned()).or_default() += samples;
        }
    }
    Ok(found)
}
