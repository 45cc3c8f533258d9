//! Tests that the stacks of Java's virtual threads have what is on them, and say what is not.
#![cfg(target_arch = "x86_64")]

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use varid_tests::{
    compile_class, has_jdk, java_homes, printed, skip_without_root, skipped, testbed,
};

/// Returns the version of a JDK, from its file `release`.
fn version(home: &Path) -> Option<u32> {
    let release = std::fs::read_to_string(home.join("release")).ok()?;
    let version = release.split("JAVA_VERSION=\"").nth(1)?;
    version.split(['.', '"']).next()?.parse().ok()
}

/// Returns the newest JDK that has virtual threads.
fn jdk() -> Option<PathBuf> {
    let homes = java_homes().unwrap_or_default().into_iter();
    let versions = homes.filter_map(|home| Some((version(&home)?, home)));
    let newest = versions.max()?;
    (newest.0 >= 21).then_some(newest.1)
}

#[test]
fn virtual_threads_that_have_waited_have_a_marker_for_the_frames_in_the_heap() -> Result<()> {
    let Some(jdk) = jdk().filter(|_| has_jdk()) else {
        skipped("virtual threads", "there is no JDK 21 or later");
        return Ok(());
    };
    if skip_without_root("virtual threads") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class("Virtual", folder.path())?;
    let session = folder.path().join("session");
    let mut record = testbed()?.varid();
    record.args(["record", "-F", "997", "-o"]).arg(&session);
    record.arg("--").arg(jdk.join("bin/java")).arg("-cp");
    record.arg(folder.path()).args(["Virtual", "2"]);
    printed(record.stdin(Stdio::null()))?;
    let mut export = testbed()?.varid();
    export
        .args(["export", "-f", "folded", "-o", "-", "-i"])
        .arg(&session);
    let stacks = printed(&mut export)?;
    let (mut waited, mut whole) = (0_u64, 0_u64);
    for line in stacks.lines() {
        let (stack, weight) = line.rsplit_once(' ').context("a folded stack")?;
        let frames: Vec<_> = stack.split(';').collect();
        let Some(inner) = frames.iter().rposition(|frame| *frame == "Virtual.inner") else {
            continue;
        };
        let weight: u64 = weight.parse()?;
        match frames[..inner].last() {
            Some(&"[virtual-thread]") => waited += weight,
            Some(&"Virtual.middle") => whole += weight,
            _ => ensure!(false, "other callers: {line}"),
        }
    }
    println!("virtual threads: {waited} ns have waited, {whole} ns are whole");
    ensure!(waited > 0 && waited > 9 * whole);
    Ok(())
}
