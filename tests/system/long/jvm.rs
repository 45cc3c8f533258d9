//! Tests that varid describes JVMs of three versions, with each collector, by the tables that they export.
#![cfg(target_arch = "x86_64")] // Where tests/jvm/build.sh makes roots.

#[path = "../jvm/mod.rs"]
mod running;

use anyhow::{Context, Result, ensure};
use running::{COLLECTORS, Place, RunningJvm, TablesBy, compare, has_jdk};
use std::path::PathBuf;
use std::process::Command;
use varid_tests::{skip_without_root, skipped};

/// Exit status of the script if a package is not in the cache and cannot be fetched.
const NOT_FETCHED: i32 = 3;
/// Shows the interpreter.
const PRINTS: [&str; 2] = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintInterpreter"];

/// Returns the root with a version of Debian 13. None if it cannot be fetched.
pub fn root(version: u32) -> Result<Option<PathBuf>> {
    let test = std::env::current_exe()?;
    let release = test.ancestors().nth(2).context("no profile folder")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/jvm/build.sh");
    let built = Command::new(script)
        .arg(release)
        .arg(version.to_string())
        .status()?;
    if built.code() == Some(NOT_FETCHED) {
        skipped("jvm", &format!("JDK {version} cannot be fetched"));
        return Ok(None);
    }
    ensure!(built.success(), "{script}: {built}");
    Ok(Some(release.join(format!("jvm/{version}"))))
}

/// Compares a version with each collector, with and without compressed class pointers and a segmented code cache.
fn each_collector(place: Place<'_>, version: u32) -> Result<()> {
    for (flag, name) in COLLECTORS {
        let collector = format!("-XX:+{flag}");
        let others = ["-XX:-SegmentedCodeCache", "-XX:-UseCompressedClassPointers"];
        for way in [&[][..], &others[..1], &others[1..]] {
            let options = [&PRINTS[..], &[collector.as_str()], way].concat();
            let mut running = RunningJvm::start(place, &options)?;
            running.wait()?;
            let jvm = compare(&running, TablesBy::Python, true)?;
            let expected = match (name, version) {
                ("ZGC", 24..) => "generational ZGC",
                _ => name,
            };
            ensure!(jvm.flags.collector.to_string() == expected, "{jvm}");
            ensure!(jvm.version.major == version, "{jvm}");
        }
    }
    Ok(())
}

#[test]
fn each_version_with_each_collector_is_described_as_the_jdks_own_tools_describe_it() -> Result<()> {
    if skip_without_root("jvm") {
        return Ok(());
    }
    if !has_jdk() {
        skipped("jvm", "there is no openjdk-17-jdk-headless");
        return Ok(());
    }
    each_collector(Place::Here, 17)?;
    for version in [21, 25] {
        if let Some(root) = root(version)? {
            let jdk = format!("/usr/lib/jvm/java-{version}-openjdk-amd64");
            each_collector(Place::Root(&root, &jdk), version)?;
        }
    }
    Ok(())
}
