//! Tests that `varid estimate` finds the cycles that all programs take on processors, simulated in this run, what
//! programs of others took when it was recorded, and how often each instruction is executed.

#[path = "../processors.rs"]
mod truth;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use truth::{Truth, json};
use varid_tests::{printed, skipped, testbed};

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

/// Executions of instructions, by their addresses.
type Executions = BTreeMap<u64, u64>;

#[test]
fn each_instruction_is_executed_as_often_as_in_qemu() -> Result<()> {
    if !Path::new("/usr/bin/qemu-riscv32").exists() {
        skipped("executions", "qemu-riscv32 is missing");
        return Ok(());
    }
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest");
    let folder = tempfile::tempdir()?;
    let plugin = folder.path().join("executions.so");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-o"]);
    printed(compiler.arg(&plugin).arg(guest.join("executions.c")))?;
    let mut checked = 0;
    for entry in std::fs::read_dir(guest.join("elf"))? {
        let elf = entry?.path();
        let (actual, found) = (emulated(&elf, &plugin)?, annotated(&elf)?);
        ensure!(
            actual == found,
            "{}: {:x?}",
            elf.display(),
            first_difference(&actual, &found)
        );
        checked += 1;
    }
    ensure!(checked > 0, "no program was recorded");
    Ok(())
}

/// The lowest address with two counts of executions, and these.
fn first_difference(actual: &Executions, found: &Executions) -> Option<(u64, [u64; 2])> {
    let addresses = actual.keys().chain(found.keys());
    let counts = |address: &u64| {
        let count = |executions: &Executions| executions.get(address).copied().unwrap_or(0);
        (*address, [count(actual), count(found)])
    };
    addresses
        .map(counts)
        .filter(|(_, [actual, found])| actual != found)
        .min()
}

/// What QEMU counts. A program ends with any status.
fn emulated(elf: &Path, plugin: &Path) -> Result<Executions> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("executions");
    let plugin = format!("{},output={}", plugin.display(), output.display());
    Command::new("qemu-riscv32")
        .args(["-plugin", &plugin])
        .arg(elf)
        .status()?;
    let lines = std::fs::read_to_string(output)?;
    let parse = |line: &str| {
        let (address, count) = line.split_once('\t').context("no tab")?;
        Ok((u64::from_str_radix(address, 16)?, count.parse()?))
    };
    lines.lines().map(parse).collect()
}

/// What `varid annotate` shows of all functions of a program that was executed.
fn annotated(elf: &Path) -> Result<Executions> {
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let varid = |verb: &str| -> Result<Command> {
        let mut varid = testbed()?.varid();
        varid.arg(verb);
        Ok(varid)
    };
    let mut estimate = varid("estimate")?;
    estimate.args(["--target", "ibex", "-o"]).arg(&session);
    printed(estimate.arg(elf))?;
    let mut report = varid("report")?;
    report.args(["--by", "symbol", "--format", "json"]);
    let report = json(report.arg(&session))?;
    let mut executions = Executions::new();
    for row in report["rows"].as_array().context("no rows")? {
        let function = row["symbol"].as_str().context("no symbol")?;
        let mut annotate = varid("annotate")?;
        annotate.arg(function).arg(&session);
        let options = ["--format", "json", "--measure", "instructions"];
        let code = json(annotate.args(options))?;
        let lines = list(&code, "files").flat_map(|file| list(file, "lines"));
        for instruction in lines.flat_map(|line| list(line, "instructions")) {
            let address = instruction["address"].as_str().context("no address")?;
            let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
            let count = instruction["self"].as_u64().context("no count")?;
            if count > 0 {
                executions.insert(address, count);
            }
        }
    }
    Ok(executions)
}

/// The elements of a list of an object, if it has the list.
fn list<'v>(object: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    object[key].as_array().into_iter().flatten()
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
