//! Tests that varid names what the code of a running JVM executes as the JVM itself does.

#[path = "../jvm/methods.rs"]
mod written;

use anyhow::{Result, ensure};
use std::path::Path;
use varid_tests::{skip_without_root, skipped};
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
    let installed = std::fs::read_dir("/usr/lib/jvm")?;
    let mut homes: Vec<_> = installed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|home| home.join("lib/server/libjvm.so").exists() && !home.is_symlink())
        .filter(|home| home != Path::new(JDK))
        .collect();
    if let Some(more) = std::env::var_os("JAVA_HOMES") {
        homes.extend(std::env::split_paths(&more));
    }
    for home in homes {
        let written = WrittenJvm::start(&home, &[], 300)?;
        check(&home.display().to_string(), &compare(&written)?)?;
    }
    Ok(())
}
