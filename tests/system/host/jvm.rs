//! Tests that varid describes the JVMs of Debian 12 by the tables that they export.

#[path = "../jvm/mod.rs"]
mod running;

use anyhow::{Context, Result, ensure};
use running::{Place, RunningJvm, TablesBy, compare, has_jdk};
use varid_process::Images;
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
        line.trim_start().starts_with("ok ") && line.contains(&shown),
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
    let start = || RunningJvm::start(Place::Here, &["-Xint"]);
    // Its library takes longer to read than the VM to start.
    let images = &mut Images::default();
    let mut running = start()?;
    running.wait()?;
    let before = running.describe(images).context("it has no HotSpot")??;
    let mut running = start()?;
    let (mut unmapped, mut starting) = (0, 0);
    let first = loop {
        match running.describe(images) {
            None => unmapped += 1,
            Some(Err(JvmError::NotStarted(_))) => starting += 1,
            Some(described) => break described?,
        }
    };
    running.wait()?;
    let later = running.describe(images).context("it has no HotSpot")??;
    println!("jvm: not mapped {unmapped} times, starting {starting} times: {first}");
    ensure!(before.layout == later.layout && first.layout == later.layout);
    ensure!(first.interpreter == later.interpreter && first.flags == later.flags);
    running.kill()?;
    ensure!(running.describe(images).is_none());
    Ok(())
}
