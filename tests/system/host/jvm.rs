//! Tests that varid describes the JVMs of Debian 12 by the tables that they export.

#[path = "../jvm/mod.rs"]
mod running;

use anyhow::{Context, Result, ensure};
use running::{Place, RunningJvm, TablesBy, compare, has_jdk};
use varid_tests::{printed, skip_without_root, skipped, testbed};
use varid_vm::JvmError;

/// What shows its interpreter.
const PRINTS: [&str; 2] = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintInterpreter"];

fn skip() -> bool {
    let skip = !has_jdk();
    if skip {
        skipped("jvm", "there is no openjdk-17-jdk-headless");
    }
    skip || skip_without_root("jvm")
}

#[test]
fn a_jvm_is_described_as_the_jdks_own_tools_describe_it() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let mut running = RunningJvm::start(Place::Here, &PRINTS)?;
    running.wait()?;
    compare(&running, TablesBy::Jhsdb, true)?;
    Ok(())
}

#[test]
fn a_jvm_in_a_container_is_described_and_doctor_shows_it() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let options = ["-XX:+UseSerialGC", "-XX:-UseCompressedClassPointers"];
    let mut running = RunningJvm::start(Place::Container, &options)?;
    running.wait()?;
    let jvm = compare(&running, TablesBy::Python, false)?;
    let shown = jvm.to_string();
    let parts = [" with Serial, ", "class pointers of 64 bits"];
    ensure!(parts.iter().all(|part| shown.contains(part)), "{shown}");
    // Its exit status says whether anything can be profiled here.
    let text = printed(testbed()?.varid().arg("doctor"))?;
    let place = format!("process {}, ", running.pid());
    let mut lines = text.lines();
    let line = lines
        .find(|line| line.contains(&place))
        .context(text.clone())?;
    ensure!(
        line.trim_start().starts_with("limits ") && line.contains(&shown),
        "{line}\n{shown}"
    );
    Ok(())
}

/// Its library is relocated, its VM is made, and it ends, while it is read.
#[test]
fn a_jvm_is_described_once_it_has_started_and_until_it_ends() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let mut running = RunningJvm::start(Place::Here, &["-Xint"])?;
    let mut looks = 0;
    let first = loop {
        looks += 1;
        match running.describe() {
            None | Some(Err(JvmError::NotStarted(_))) => {}
            Some(described) => break described?,
        }
    };
    running.wait()?;
    let later = running.describe().context("it has no HotSpot")??;
    println!("jvm: described at look {looks}: {first}");
    ensure!(first.layout == later.layout && first.interpreter == later.interpreter);
    ensure!(first.flags == later.flags && first.version == later.version);
    running.kill()?;
    ensure!(running.describe().is_none());
    Ok(())
}
