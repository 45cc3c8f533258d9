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
    let found = once().or_else(|_| once()).or_else(|_| once())?;
    println!("shares: {found}");
    Ok(())
}

/// Five runs, judged together.
fn once() -> Result<serde_json::Value> {
    // A prime rate, at which each run has about 5,000 samples.
    let app = App::new("truth", "shares", ROUNDS)?;
    let runs = (0..5)
        .map(|_| record(&app, &["-F", "3989"]))
        .collect::<Result<Vec<_>>>()?;
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
