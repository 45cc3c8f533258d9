//! Has every method the share of the samples that it has of the work?

use anyhow::{Result, ensure};
use varid_tests::{App, judge, record, skip_without_root, testbed};

/// A whole number of the workload's cycles of 801 rounds: its shares are exact then.
const ROUNDS: u32 = 2 * 801;

#[test]
fn shares_of_known_work_are_right_in_self_and_total() -> Result<()> {
    if skip_without_root("shares") {
        return Ok(());
    }
    // What a neighbour does to a shared machine for a second passes; what varid does wrong comes again.
    // A percentage point is three standard deviations of a share of SAMPLES: three times in a row chance does not do it.
    let found = once().or_else(|_| once()).or_else(|_| once())?;
    println!("shares: {found}");
    Ok(())
}

/// So many have a share of one half to within 0.32 percentage points, by the binomial distribution.
const SAMPLES: u64 = 24_000;
/// A faster machine takes more runs, and one whose kernel allows no such rate; none takes so many.
const RUNS: usize = 50;

/// Runs until there are enough samples, judged together.
fn once() -> Result<serde_json::Value> {
    let app = App::new("truth", "shares", ROUNDS)?;
    let (mut runs, mut samples) = (Vec::new(), 0);
    while samples < SAMPLES && runs.len() < RUNS {
        // A prime rate.
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
