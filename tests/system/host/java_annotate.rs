//! Tests that an annotated Java method has its bytecode and its compiled code, each instruction with the samples that were in it.
#![cfg(target_arch = "x86_64")]

#[path = "../jvm/annotated.rs"]
mod annotated;

use annotated::{PROGRAM, record_and_compare};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use varid_tests::{JAVA_PACKAGE, has_jdk, java_classes, java_homes, skip_without_root, skipped};

fn skip() -> bool {
    if !has_jdk() {
        skipped("annotated Java", "there is no openjdk-17-jdk-headless");
        return true;
    }
    skip_without_root("annotated Java")
}

/// The program in the JVM of this home, with an option, for so many rounds.
fn java(home: &Path, option: &str, rounds: u32) -> Result<Command> {
    let mut java = Command::new(home.join("bin/java"));
    java.arg(option).arg("-cp").arg(java_classes()?);
    java.arg(format!("{JAVA_PACKAGE}.{PROGRAM}"));
    java.arg(rounds.to_string());
    Ok(java)
}

/// Of the JDKs of this machine, and of those of the variable JAVA_HOMES, separated by colons.
#[test]
fn compiled_java_has_javaps_bytecode_and_objdumps_instructions_with_their_samples() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for home in java_homes()? {
        let compared = record_and_compare(&java(&home, "-XX:+TieredCompilation", 6_000)?)?;
        ensure!(
            2 * compared.compiled > compared.samples,
            "{}: {compared:?}",
            home.display()
        );
    }
    Ok(())
}

#[test]
fn interpreted_java_has_javaps_bytecode_with_its_samples() -> Result<()> {
    if skip() {
        return Ok(());
    }
    for home in java_homes()? {
        let compared = record_and_compare(&java(&home, "-Xint", 800)?)?;
        ensure!(compared.compiled == 0, "{compared:?}");
    }
    Ok(())
}
