//! Tests that a tree has the app's calls as in `perf report`, and that filters partition a recording.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use varid_tests::{App, printed, record, report_with, skip_without_root};

/// Samples by path of the app's methods, outermost first. A recursive method occurs once.
type Paths = BTreeMap<Vec<String>, u64>;

fn is_app(name: &str) -> bool {
    name.starts_with("org.example.")
}

/// Returns the paths by varid's tree, for stacks that begin with the app's methods.
fn by_varid(session: &Path) -> Result<Paths> {
    let report = report_with(session, &["--tree", "--percent-limit", "0", "--no-inline"])?;
    let (mut path, mut paths) = (Vec::new(), Paths::new());
    for row in report["rows"].as_array().context("no rows")? {
        let depth = row["depth"].as_u64().context("no depth")?;
        path.truncate(usize::try_from(depth)?);
        path.push(row["symbol"].as_str().context("no symbol")?.to_owned());
        if path.iter().all(|name| is_app(name)) {
            let total = row["total"].as_u64().context("no total")?;
            *paths.entry(path.clone()).or_default() += total;
        }
    }
    Ok(paths)
}

/// Returns the paths by perf, which prints a line for each stack: `COUNT outermost;…;leaf`.
fn by_perf(session: &Path) -> Result<Paths> {
    let mut perf = Command::new("perf");
    perf.args(["report", "--stdio", "--no-children", "--no-inline", "-g"]);
    perf.args(["folded,0,caller,function,count", "--sort", "symbol", "-i"]);
    let printed = printed(perf.arg(session.join("perf.data")))?;
    let mut paths = Paths::new();
    for line in printed.lines() {
        let Some((count, stack)) = line.split_once(' ') else {
            continue;
        };
        let Ok(count) = count.parse::<u64>() else {
            continue;
        };
        let methods = stack.split(';').take_while(|name| is_app(name));
        let mut path: Vec<_> = methods.map(str::to_owned).collect();
        path.dedup();
        for len in 1..=path.len() {
            *paths.entry(path[..len].to_vec()).or_default() += count;
        }
    }
    Ok(paths)
}

#[test]
fn a_tree_has_the_calls_of_perf_report_and_filters_divide_a_recording() -> Result<()> {
    if skip_without_root("tree") {
        return Ok(());
    }
    let recording = record(&App::new("scene", "run", 240)?, &["-F", "1999"])?;
    let session = recording.session();
    let (varid, perf) = (by_varid(&session)?, by_perf(&session)?);
    ensure!(varid.len() > 10, "{varid:?}");
    ensure!(varid == perf, "varid {varid:?}\nperf {perf:?}");
    println!("tree: {} paths, as perf report has them", varid.len());

    let samples = |options: &[&str]| -> Result<u64> {
        let report = report_with(&session, options)?;
        report["samples"].as_u64().context("no samples")
    };
    let all = samples(&[])?;
    // The app runs to the recording's end, and starts when varid is ready.
    let nanoseconds = varid_tests::manifest(&session)?["duration_ns"].as_u64();
    let late = nanoseconds.context("no duration")? / 1_000_000 * 4 / 5;
    let (before, after) = (format!("..{late}ms"), format!("{late}ms.."));
    for (one, other) in [
        (["--focus", "Camera"], ["--ignore", "Camera"]),
        (["--focus", "libscene"], ["--ignore", "libscene"]),
        (["--time", &before], ["--time", &after]),
    ] {
        let halves = (samples(&one)?, samples(&other)?);
        ensure!(halves.0 > 0 && halves.1 > 0, "{one:?}: {halves:?}");
        ensure!(halves.0 + halves.1 == all, "{one:?}: {halves:?} of {all}");
    }
    Ok(())
}
