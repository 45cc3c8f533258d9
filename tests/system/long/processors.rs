//! Tests that `varid estimate` finds the cycles that all programs take on processors, simulated in this run.

#[path = "../processors.rs"]
mod truth;

use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use truth::Truth;
use varid_tests::skipped;

/// The exit status of a script that cannot do its work on this machine.
const SKIPPED: i32 = 77;

#[test]
fn cycles_and_executions_are_those_of_each_processor_s_rtl() -> Result<()> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let build = tests.join("../target/rtl");
    let status = Command::new(tests.join("rtl/record.sh"))
        .arg(&build)
        .status()?;
    if status.code() == Some(SKIPPED) {
        skipped("processors", "what tests/rtl/record.sh needs is missing");
        return Ok(());
    }
    // It compares the executions of each instruction with QEMU's.
    ensure!(status.success(), "tests/rtl/record.sh: {status}");
    let mut wrong = Vec::new();
    for truth in Truth::read_all(&build.join("truth"))? {
        if let Err(error) = truth.check(&build.join("elf")) {
            wrong.push(format!("{error:#}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
