//! Tests that the share of samples of every method equals its share of the work.

use anyhow::{Result, ensure};
use varid_tests::{App, judge, record, skip_without_root, testbed};

/// A multiple of the workload's cycle of 801 rounds, for which its shares are exact.
const ROUNDS: u32 = 2 * 801;

#[test]
fn shares_of_known_work_are_right_in_self_and_total() -> Result<()> {
    if skip_without_root("shares") {
        return Ok(());
    }
    // Interference on a shared machine is transient, and errors of varid occur again.
    // A percentage point is three standard deviations of a share of SAMPLES, which is not exceeded by chance three
    // times in a row.
    let found = once().or_else(|_| once()).or_else(|_| once())?;
    println!("shares: {found}");
    Ok(())
}

/// This number determines a share of one half to within 0.32 percentage points, by the binomial distribution.
const SAMPLES: u64 = 24_000;
/// The maximum number of runs. Faster machines, and kernels that limit the rate, need more runs, but never this many.
const RUNS: usize = 50;

/// Records until there are enough samples, and judges them together.
fn once() -> Result<serde_json::Value> {
    let app = App::new("truth", "shares", ROUNDS)?;
    let (mut runs, mut samples) = (Vec::new(), 0);
    while samples < SAMPLES && runs.len() < RUNS {
        // A prime number.
        let run = record(&app, &["-F", "3989"])?;
        samples += run.counts()?["attributed"].as_u64().unwrap_or(0);
        runs.push(run);
    }
    let truth = testbed()?.workloads.join("truth.json");
    let found = judge(
        "shares.py",
        std::iter::once(truth).chain(runs.iter().map(|run| run.session())),
    )
    .inspect_err(|error| println!("{error}"))?;
    ensure!(
        found["samples"].as_u64() >= Some(20_000),
        "too few samples for a percentage point: {found}"
    );
    Ok(found)
}
