//! Tests that varid names what the code of a running JVM executes as the JVM itself does.

#[path = "../jvm/methods.rs"]
mod written;

use anyhow::{Result, ensure};
use std::path::Path;
use varid_tests::{java_homes, skip_without_root, skipped};
use written::{JDK, WrittenJvm, check, compare};

fn skip() -> bool {
    let skip = !Path::new(JDK).join("include/jvmti.h").exists();
    if skip {
        skipped("jvm", "there is no openjdk-17-jdk-headless");
    }
    skip || skip_without_root("jvm")
}

fn compare_with(options: &[&str]) -> Result<()> {
    if skip() {
        return Ok(());
    }
    let written = WrittenJvm::start(Path::new(JDK), options, 300)?;
    let compared = compare(&written)?;
    check(&format!("JDK 17 {}", options.join(" ")), &compared)?;
    ensure!(compared.pcs > 1000 && compared.stubs > 100, "{compared:?}");
    Ok(())
}

#[test]
fn code_of_both_compilers_executes_what_jvmti_says() -> Result<()> {
    compare_with(&[])
}

#[test]
fn code_with_debug_information_between_safepoints_executes_what_jvmti_says() -> Result<()> {
    compare_with(&["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"])
}

/// Other JDKs of this machine, and those of the variable JAVA_HOMES, separated by colons.
#[test]
fn code_of_other_versions_executes_what_jvmti_says() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let homes = java_homes()?.into_iter();
    for home in homes.filter(|home| home != Path::new(JDK)) {
        let written = WrittenJvm::start(&home, &[], 300)?;
        check(&home.display().to_string(), &compare(&written)?)?;
    }
    Ok(())
}
