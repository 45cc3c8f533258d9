//! Compares what `varid annotate` shows of a Java program's methods with the JDK's own javap, objdump and perf.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use varid_tests::{JAVA_PACKAGE, java_classes, judge, printed, testbed};

/// The program: methods with the same loop.
pub const PROGRAM: &str = "Shares";
const METHODS: [&str; 4] = ["one", "two", "three", "four"];

/// What was compared of all methods.
#[derive(Debug, Default)]
pub struct Compared {
    /// Samples in the methods.
    pub samples: u64,
    /// Those in compiled code, at instructions that are shown.
    pub compiled: u64,
}

/// Records the program, `java` with all its arguments, and compares each of its methods.
pub fn record_and_compare(java: &Command) -> Result<Compared> {
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let mut record = testbed()?.varid();
    record.args(["record", "-q", "-F", "1999", "-o"]);
    record.arg(&session).arg("--").arg(java.get_program());
    printed(record.args(java.get_args()).stdin(Stdio::null()))?;
    let mut all = Compared::default();
    for method in METHODS {
        let compared = compare(&session, method, folder.path()).with_context(|| method)?;
        all.samples += compared.samples;
        all.compiled += compared.compiled;
    }
    println!("java annotate: {java:?}: {all:?}");
    ensure!(all.samples > 1000, "too few samples: {all:?}");
    Ok(all)
}

fn compare(session: &Path, method: &str, folder: &Path) -> Result<Compared> {
    let classes = java_classes()?;
    let mut annotate = testbed()?.varid();
    annotate.args(["annotate", "--format", "json"]);
    annotate.arg(format!("{JAVA_PACKAGE}.{PROGRAM}.{method}"));
    annotate.arg("--class-path").arg(classes);
    let annotation = folder.join("annotation.json");
    std::fs::write(&annotation, printed(annotate.arg("-i").arg(session))?)?;
    let counts = judge("java_annotate.py", [session, classes, &annotation])?;
    let count = |name: &str| counts[name].as_u64().context("no count");
    Ok(Compared {
        samples: count("samples")?,
        compiled: count("compiled")?,
    })
}
