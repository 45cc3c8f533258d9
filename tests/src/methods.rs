//! Counts the leaf samples of each method of an app, by varid and by perf.

use crate::command::printed;
use crate::testbed::testbed;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Leaf samples by method of the app.
pub type Methods = BTreeMap<String, u64>;

/// The main classes of the app `math`: SciMark's kernels and Linpack.
pub const MATH: [&str; 6] = ["FFT", "LU", "Linpack", "MonteCarlo", "SOR", "SparseCompRow"];

/// The arguments of `perf report` before the file. It prints samples and symbols, separated by `|`.
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

/// Parses the output of `perf report` with [`PERF_REPORT`].
pub fn printed_by_perf(printed: &str) -> Result<Methods> {
    let mut found = Methods::new();
    for line in printed.lines().filter(|line| line.contains("org.example.")) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, samples, symbol, ..] = fields[..] else {
            bail!("perf printed {line:?}")
        };
        // [.] means user space.
        let symbol = symbol.split_once(' ').context("no symbol")?.1.trim();
        *found.entry(symbol.to_owned()).or_default() += samples.parse::<u64>()?;
    }
    Ok(found)
}

/// Returns the methods by `perf report`, with further options.
pub fn methods_by_perf(file: &Path, options: &[&str]) -> Result<Methods> {
    let mut perf = Command::new("perf");
    perf.args(PERF_REPORT).arg(file).args(options);
    printed_by_perf(&printed(&mut perf)?)
}

/// Returns `varid report --by symbol` of a session.
pub fn report_by_symbol(session: &Path) -> Result<Value> {
    report_with(session, &["--by", "symbol"])
}

/// Returns `varid report` of a session with these options, as JSON.
pub fn report_with(session: &Path, options: &[&str]) -> Result<Value> {
    let mut report = testbed()?.varid();
    report.args(["report", "--format", "json"]).args(options);
    let printed = printed(report.arg("-i").arg(session))?;
    Ok(serde_json::from_str(&printed)?)
}

/// Returns the row of a symbol in a report, or in a comparison of several.
pub fn row_of<'r>(report: &'r Value, symbol: &str) -> Result<&'r Value> {
    let rows = report["rows"].as_array().context("no rows")?;
    let found = rows.iter().find(|row| row["symbol"] == symbol);
    found.with_context(|| format!("no row of {symbol}: {report:#}"))
}

/// Checks that a report by symbol has samples in each part of the app `math`.
pub fn has_all_of_math(report: &Value) -> Result<()> {
    let rows = report["rows"].as_array().context("no rows")?;
    for part in MATH {
        let class = format!("org.example.math.{part}.");
        let of_class = rows.iter().filter(|row| {
            let symbol = row["symbol"].as_str();
            symbol.is_some_and(|symbol| symbol.starts_with(&class))
        });
        // Includes callees because the method's own samples may be few: MonteCarlo's work is done by Random.
        let samples = of_class.filter_map(|row| row["total"].as_u64()).max();
        ensure!(
            samples > Some(20),
            "{samples:?} samples in and below {part}: {report}"
        );
    }
    Ok(())
}

/// Returns the self samples of each symbol by `varid report`.
pub fn methods_by_varid(session: &Path) -> Result<Methods> {
    methods_in(&report_by_symbol(session)?)
}

/// Like [`methods_by_varid`], from a report by symbol.
pub fn methods_in(report: &Value) -> Result<Methods> {
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
