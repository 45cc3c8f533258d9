//! Tests that the Java frames of each sample are those that the VM itself finds at the same instant.
#![cfg(target_arch = "x86_64")]

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Stdio;
use varid_tests::{
    JAVA_PACKAGE, JDK, MOST_RUNS, SampleCounts, Scale, compile_agent, has_jdk, java_classes,
    oracle, printed, scale, skip_without_root, skipped, testbed,
};

/// The interpreter, the first compiler and both, with numbers of rounds that take a few seconds.
const VM_OPTIONS: [(&str, u32); 3] = [
    ("-Xint", 60),
    ("-XX:TieredStopAtLevel=1", 1_000),
    ("-XX:+TieredCompilation", 1_500),
];
/// A thread's processor time between two of its traces, in nanoseconds.
const PERIOD: u32 = 997_000;
/// Of so many samples of Java code one may differ in each way.
const SAMPLES_FOR_A_DIFFERENCE: u64 = 200;

/// Records the workload, with a sample where the agent asks the VM. Returns what the oracle has counted, and its first complaints.
fn compared(option: &str, rounds: u32, agent: &Path) -> Result<(serde_json::Value, String)> {
    let folder = tempfile::tempdir()?;
    let (session, traces) = (folder.path().join("session"), folder.path().join("traces"));
    let mut varid = testbed()?.varid();
    // The frame of a signal takes a part of what is copied of a stack.
    varid.args(["record", "--shim", "bpf", "--stack", "full"]);
    varid.args(["--ring-pages", "8192", "-e"]);
    varid.arg(format!("uprobe:{}:traces_sampled", agent.display()));
    varid.arg("-o").arg(&session).arg("--");
    varid.arg(format!("{JDK}/java"));
    let options = format!("{},{PERIOD}", traces.display());
    varid.arg(format!("-agentpath:{}={options}", agent.display()));
    varid.arg(option).arg("-cp").arg(java_classes()?);
    varid.arg(format!("{JAVA_PACKAGE}.Truth"));
    printed(varid.arg(rounds.to_string()).stdin(Stdio::null()))?;
    let inputs = [session, traces, java_classes()?.into(), JAVA_PACKAGE.into()];
    let (_, counts, complaints) = oracle("java_traces.py", inputs)?;
    Ok((counts, complaints))
}

/// Compares until there are enough samples of Java code.
fn judge(option: &str, rounds: u32, agent: &Path, enough: u64) -> Result<()> {
    let (mut counts, mut complaints) = (SampleCounts::default(), String::new());
    for _ in 0..MOST_RUNS {
        if counts.of("in Java") >= enough {
            break;
        }
        let (counted, complained) = compared(option, rounds, agent)?;
        counts.add(&counted)?;
        complaints.push_str(&complained);
    }
    println!("java traces: {option}: {counts:?}");
    let in_java = counts.of("in Java");
    ensure!(in_java >= enough, "too few samples");
    ensure!(counts.of("wrong") == 0, "wrong methods\n{complaints}");
    for (kind, count) in counts.beginning_with("differs: ") {
        let is_rare = count * SAMPLES_FOR_A_DIFFERENCE <= in_java;
        // The load of the machine determines how much is read too late of a VM that ends.
        ensure!(
            is_rare || kind == "ends in [vm-gone]",
            "{kind}: {count} of {in_java}\n{complaints}"
        );
    }
    Ok(())
}

#[test]
fn java_frames_are_those_that_the_vm_finds_at_the_same_instant() -> Result<()> {
    if !has_jdk() {
        skipped("java traces", "there is no openjdk-17-jdk-headless");
        return Ok(());
    }
    if skip_without_root("java traces") {
        return Ok(());
    }
    let enough = match scale() {
        Scale::Gate => 1_000,
        Scale::Long => 5_000,
    };
    let folder = tempfile::tempdir()?;
    let agent = compile_agent("traces", folder.path())?;
    for (option, rounds) in VM_OPTIONS {
        judge(option, rounds, &agent, enough).with_context(|| option.to_owned())?;
    }
    Ok(())
}
