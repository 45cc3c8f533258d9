//! Tests that compiled Java code is named by the methods that were there, while the VM frees code and puts other code in its place.
#![cfg(target_arch = "x86_64")]

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Stdio;
use varid_tests::{
    JDK, Scale, compile_agent, compile_class, has_jdk, judge, printed, scale, skip_without_root,
    skipped, testbed,
};

/// The environment variable with the seconds for which the program runs.
const SECONDS: &str = "VARID_CHURN_SECONDS";
/// Options of the VM: a code cache that is soon full, code that is compiled soon and freed soon. Frame pointers are for the oracle.
const VM_OPTIONS: [&str; 10] = [
    "-XX:+UseSerialGC",
    "-XX:ReservedCodeCacheSize=8m",
    "-XX:CompileThresholdScaling=0.05",
    "-XX:SweeperThreshold=0.2",
    "-XX:+PreserveFramePointer",
    // A compiler's thread that ends frees its scratch memory, of which the agent is told as of code.
    "-XX:-UseDynamicNumberOfCompilerThreads",
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=dontinline,Hot*::call*",
    // C2 sets its frame pointer in two instructions, of which the oracle has to know.
    "-XX:CompileCommand=dontinline,java.lang.Integer::reverse",
    "-Xmx128m",
];

fn seconds() -> Result<u64> {
    match (std::env::var(SECONDS), scale()) {
        (Ok(seconds), _) => seconds.parse().context(SECONDS),
        (Err(_), Scale::Long) => Ok(180),
        (Err(_), Scale::Gate) => Ok(15),
    }
}

/// Records the program until it ends. Returns what the oracle has counted.
fn judged(folder: &Path, seconds: u64) -> Result<serde_json::Value> {
    let (session, log) = (folder.join("session"), folder.join("log"));
    compile_class("Churn", folder)?;
    let agent = compile_agent("churn", folder)?;
    let mut varid = testbed()?.varid();
    varid.args(["record", "-F", "997", "--shim", "bpf", "--keep-raw"]);
    varid.args(["--ring-pages", "8192", "-o"]).arg(&session);
    varid.arg("--").arg(format!("{JDK}/java"));
    varid.arg(format!("-agentpath:{}", agent.display()));
    varid.args(VM_OPTIONS).arg("-cp").arg(folder).arg("Churn");
    varid.args([&agent, &log]).arg(folder);
    printed(varid.arg(seconds.to_string()).stdin(Stdio::null()))?;
    judge("java_churn.py", [session, log])
}

#[test]
fn compiled_java_has_the_names_of_its_time_while_code_is_freed_and_replaced() -> Result<()> {
    if !has_jdk() {
        skipped("java churn", "there is no openjdk-17-jdk-headless");
        return Ok(());
    }
    if skip_without_root("java churn") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let seconds = seconds()?;
    let counts = judged(folder.path(), seconds)?;
    println!("java churn: {seconds} s: {counts}");
    let of = |name: &str| counts[name].as_u64().unwrap_or(0);
    ensure!(of("wrong") == 0, "{counts}");
    ensure!(of("loaded where other code was") > 10 * seconds, "{counts}");
    ensure!(of("addresses") > 200 * seconds, "{counts}");
    // Of two candidates the oracle cannot tell which one was there.
    ensure!(of("ambiguous") * 2 < of("addresses"), "{counts}");
    ensure!(of("codes") > seconds, "{counts}");
    ensure!(of("unnamed") * 20 < of("addresses"), "{counts}");
    Ok(())
}
