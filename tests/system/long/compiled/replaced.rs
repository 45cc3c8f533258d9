//! Tests the attribution of code that is collected and whose memory is reused, and of code that is left or entered in
//! the middle of a method.

use super::{Counts, Run, Stack};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use varid_tests::{Code, Scale, scale, skip_without_root};

/// A code cache that is too small for the workload.
const SMALL_CACHE: [&str; 2] = ["-Xjitinitialsize:128K", "-Xjitmaxsize:128K"];
/// A code cache that is never full.
const LARGE_CACHE: [&str; 1] = ["-Xjitinitialsize:32M"];
/// With tiers, methods are compiled twice, and hot code is only discarded for better code.
const ONE_TIER: &str = "-Xusetieredjit:false";

/// Records runs of a workload, each for this number of seconds, for a total time. No sample may be wrong, and in calm
/// runs at most `per_mille` may be without a name.
fn judged(
    method: &'static str,
    vm_options: &[&'static str],
    (time, seconds, whole): (&'static str, u64, Duration),
    per_mille: u64,
) -> Result<Counts> {
    const RATE: u64 = 2000;
    let begun = Instant::now();
    let (mut all, mut calm) = (Counts::default(), Counts::default());
    while all.judged() < 4000 || begun.elapsed() < whole {
        let run = Run {
            vm_options: vm_options.to_vec(),
            rate: "2000",
            ..Run::new((Code::Jit, Stack::Full), ("jit", method, 1_000_000), time)
        };
        let counts = run.judged()?;
        all.add(&counts);
        // On a busy machine varid may also be late, when code is already gone.
        if counts.judged() * 10 > RATE * seconds * 5 {
            calm.add(&counts);
        }
    }
    println!("jit {method}: {all:?}");
    println!("jit {method}: {} samples of calm runs", calm.judged());
    ensure!(all.get("wrong") == 0, "{all:?}");
    for what in ["unattributed", "broken stacks"] {
        let few = calm.judged() * per_mille / 1000;
        // Torn frames do not count. There the outer frames are unknown: the walk ends at a return into code that its
        // method has left, or that was entered in a loop.
        let without = calm.get(what).saturating_sub(calm.get("[torn-frames]"));
        ensure!(
            without <= few,
            "{per_mille} per mille {what} of calm runs: {calm:?}"
        );
    }
    Ok(all)
}

/// Returns the total time of the runs.
fn whole() -> Duration {
    Duration::from_secs(match scale() {
        Scale::Gate => 20,
        Scale::Long => 300,
    })
}

#[test]
fn no_sample_is_attributed_to_code_that_was_collected_before_or_came_after() -> Result<()> {
    if skip_without_root("collected code") {
        return Ok(());
    }
    for tiers in [&[][..], &[ONE_TIER]] {
        let options = [&SMALL_CACHE[..], tiers].concat();
        let all = judged("churn", &options, ("10s", 10, whole()), 5)?;
        let replacing = all.get("jit codes in the place of others");
        ensure!(replacing > 100, "the JIT reuses little: {all:?}");
    }
    Ok(())
}

#[test]
fn methods_that_leave_their_code_are_attributed_on_both_sides() -> Result<()> {
    if skip_without_root("deoptimised code") {
        return Ok(());
    }
    for method in ["hierarchy", "bounds"] {
        judged(method, &LARGE_CACHE, ("1s", 1, whole() / 20), 20)?;
    }
    Ok(())
}

#[test]
fn a_loop_that_is_compiled_while_it_runs_is_attributed_to_its_method() -> Result<()> {
    if skip_without_root("on-stack replacement") {
        return Ok(());
    }
    let all = judged("loop", &LARGE_CACHE, ("1s", 1, whole() / 20), 5)?;
    ensure!(all.get("compiled") * 2 > all.judged(), "{all:?}");
    Ok(())
}
