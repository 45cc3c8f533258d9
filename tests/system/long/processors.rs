//! Tests that `varid estimate` finds the cycles that all programs take on processors, simulated in this run, and what
//! programs of others took when it was recorded.

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
    // It compares the executions of each instruction with QEMU's.
    if !run(Command::new(tests.join("rtl/record.sh")).arg(&build))? {
        skipped("processors", "what tests/rtl/record.sh needs is missing");
        return Ok(());
    }
    check(&build.join("truth"), &build.join("elf"))
}

/// The descriptions of the processors were made without these programs.
#[test]
fn cycles_of_programs_of_registries_are_those_that_were_recorded() -> Result<()> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guest = tests.join("guest");
    let build = tests.join("../target/rtl");
    let programs = build.join("registries");
    let mut script = Command::new(guest.join("registries.sh"));
    if !run(script.arg(build.join("crates")).arg(&programs))? {
        let why = "what tests/guest/registries.sh needs is missing";
        skipped("programs of registries", why);
        return Ok(());
    }
    check(&guest.join("registries/truth"), &programs)
}

/// Runs a script. Returns false if it cannot do its work on this machine.
fn run(script: &mut Command) -> Result<bool> {
    let status = script.status()?;
    if status.code() == Some(SKIPPED) {
        return Ok(false);
    }
    ensure!(status.success(), "{script:?}: {status}");
    Ok(true)
}

/// Compares the estimates of programs with all files of a folder.
fn check(truths: &Path, programs: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    let truths = Truth::read_all(truths)?;
    ensure!(!truths.is_empty(), "there is no truth");
    for truth in truths {
        if let Err(error) = truth.check(programs) {
            wrong.push(format!("{error:#}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
