//! Tests that costs of bytecodes, measured by `varid calibrate`, predict what programs take that it has not seen.

use crate::calibrate::calibration::Calibration;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use varid_tests::{JDK, has_jdk, javac, printed, skipped, testbed};

/// The mean error above which something is wrong. Beside many other programs it was 9 to 16 %.
const MOST: f64 = 0.30;
/// Runs of each kernel in a VM, and VMs: code lies at other places in each.
const RUNS: &str = "101";
const LAUNCHES: usize = 3;

/// What a kernel takes, in nanoseconds: measured, and by the estimate. And how many bytecodes it executes.
struct Prediction {
    measured: f64,
    estimate: f64,
    bytecodes: f64,
}

/// Returns the mean of the errors of predictions, without their signs.
fn mean_error(predictions: &[Prediction], of: impl Fn(&Prediction) -> f64) -> f64 {
    let errors = predictions
        .iter()
        .map(|one| (of(one) / one.measured - 1.0).abs());
    errors.sum::<f64>() / predictions.len() as f64
}

/// Returns the middle one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn compile(to: &Path) -> Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/jvm/estimate");
    let mut javac = javac();
    javac.args(["--release", "8", "-Xlint:-options", "-sourcepath"]);
    javac.arg(&sources).arg("-d").arg(to);
    printed(javac.arg(sources.join("Kernels.java")))?;
    Ok(())
}

/// Times the kernels under the interpreter: the median of several VMs, in nanoseconds, by name.
fn measure(classes: &Path) -> Result<BTreeMap<String, f64>> {
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..LAUNCHES {
        let mut java = Command::new(format!("{JDK}/java"));
        java.arg("-Xint").arg("-cp").arg(classes);
        for line in printed(java.args(["Kernels", RUNS]))?.lines() {
            let mut words = line.split(' ');
            let name = words.next().context("a name")?.to_owned();
            let time = words.next_back().context("a time")?.parse()?;
            times.entry(name).or_default().push(time);
        }
    }
    let times = times.into_iter();
    Ok(times.map(|(name, times)| (name, median(times))).collect())
}

#[test]
fn a_calibration_predicts_programs_that_it_has_not_seen_better_than_one_cost_for_all() -> Result<()>
{
    if !has_jdk() {
        skipped("prediction", "there is no openjdk-17-jdk-headless");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let classes = folder.path().join("classes");
    let session = folder.path().join("session");
    fs::create_dir(&classes)?;
    compile(&classes)?;
    Calibration::of_hotspot(&["--time", "60s"], folder.path())?;
    let table = folder.path().join("table.toml");
    let measured = measure(&classes)?;
    let mut exact = testbed()?.varid();
    exact.args(["exact", "--bytecodes", "-o"]).arg(&session);
    exact.arg("--").arg(format!("{JDK}/java")).arg("-cp");
    printed(exact.arg(&classes).args(["Kernels", "1"]))?;
    let mut predictions = Vec::new();
    for (name, ns) in &measured {
        let mut estimate = testbed()?.varid();
        estimate.args(["estimate", "--summary", "json", "--opcodes", "--within"]);
        estimate.arg(format!("Kernels.{name}"));
        estimate.arg("--measured").arg(format!("{:.6}ms", ns / 1e6));
        estimate.arg("--target").arg(&table).arg(&session);
        let found: serde_json::Value = serde_json::from_str(&printed(&mut estimate)?)?;
        ensure!(found["unit"] == "ns", "{found}");
        ensure!(found["uncosted"] == serde_json::json!([]), "{found}");
        let number = |value: &serde_json::Value| value.as_f64().context("a number");
        let total = number(&found["cycles"])?;
        let opcodes = found["opcodes"].as_array().context("opcodes")?;
        let parts: f64 = opcodes
            .iter()
            .filter_map(|one| one["cycles"].as_f64())
            .sum();
        ensure!((parts - total).abs() <= 1.0, "{parts} {found}");
        let error = number(&found["measured"]["error"])?;
        eprintln!("{name}: {total} ns for {ns} ns, {error:+.1} %");
        ensure!((error / 100.0 - (total / ns - 1.0)).abs() < 1e-3, "{found}");
        predictions.push(Prediction {
            measured: *ns,
            estimate: total,
            bytecodes: number(&found["instructions"])?,
        });
    }
    ensure!(predictions.len() >= 13, "{measured:?}");
    // One cost for all bytecodes, the best one there is for these programs.
    let rates = predictions.iter().map(|one| one.measured / one.bytecodes);
    let rate = median(rates.collect());
    let uniform = mean_error(&predictions, |one| one.bytecodes * rate);
    let error = mean_error(&predictions, |one| one.estimate);
    eprintln!(
        "prediction: mean error {:.1} %, with one cost {:.1} %",
        error * 100.0,
        uniform * 100.0
    );
    ensure!(error <= MOST && error < uniform, "{error} {uniform}");
    Ok(())
}
