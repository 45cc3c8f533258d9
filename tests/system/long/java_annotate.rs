//! Tests that annotated Java methods of Debian 13's JVMs have their bytecode and their compiled code.
#![cfg(target_arch = "x86_64")] // Where tests/jvm/build.sh makes roots.

#[path = "../jvm/annotated.rs"]
mod annotated;

use super::jvm::root;
use annotated::{PROGRAM, record_and_compare};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use varid_tests::{JAVA_PACKAGE, has_jdk, java_classes, printed, skip_without_root, skipped};

/// The program in the JVM of a root.
fn java(root: &Path, version: u32) -> Result<Command> {
    let classes = root.join("classes");
    printed(
        Command::new("cp")
            .arg("-rT")
            .arg(java_classes()?)
            .arg(classes),
    )?;
    let mut java = Command::new("unshare");
    java.args(["--mount", "sh", "-ec"]);
    java.arg("mount -t proc proc \"$0/proc\"; exec chroot \"$0\" \"$@\"");
    java.arg(root);
    java.arg(format!(
        "/usr/lib/jvm/java-{version}-openjdk-amd64/bin/java"
    ));
    java.args(["-cp", "/classes"]);
    java.arg(format!("{JAVA_PACKAGE}.{PROGRAM}")).arg("6000");
    Ok(java)
}

#[test]
fn other_versions_have_javaps_bytecode_and_objdumps_instructions_with_their_samples() -> Result<()>
{
    if skip_without_root("annotated Java") {
        return Ok(());
    }
    if !has_jdk() {
        skipped("annotated Java", "there is no openjdk-17-jdk-headless");
        return Ok(());
    }
    for version in [21, 25] {
        if let Some(root) = root(version)? {
            let compared = record_and_compare(&java(&root, version)?)?;
            ensure!(
                2 * compared.compiled > compared.samples,
                "JDK {version}: {compared:?}"
            );
        }
    }
    Ok(())
}
