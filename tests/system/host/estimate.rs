//! Tests that `varid estimate` finds the cycles that programs take on the Java processor JOP.
//!
//! The truth is the simulation of JOP's hardware description (October 2011), with the programs compiled by Debian's ecj.
#![cfg(target_arch = "x86_64")]

use crate::exact::skip;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tests::{JDK, javac, printed, skipped, testbed};

/// The programs, and their cycles with each of [`CACHES`].
const PROGRAMS: [(&str, [u64; 4]); 4] = [
    ("Pump", [372_882, 372_908, 383_015, 387_614]),
    ("Tasks", [103_541, 103_597, 103_861, 108_039]),
    ("Sort", [305_612, 305_612, 305_651, 306_138]),
    ("Fir", [684_198, 684_267, 684_267, 690_512]),
];
/// Sizes and blocks of method caches.
const CACHES: [(u64, u64); 4] = [(4096, 16), (2048, 16), (1024, 16), (1024, 4)];
/// What the programs print.
const PRINTED: &str = "20742\n6206\n577878532\n2060097\n";

/// A compiler of the programs.
#[derive(Debug, Clone, Copy)]
enum Compiler {
    /// The one that the truth was compiled by.
    Ecj,
    Javac,
}

impl Compiler {
    /// The largest error, as a part of the cycles.
    const fn most(self) -> f64 {
        match self {
            Self::Ecj => 0.015,
            // CProf's.
            Self::Javac => 0.0328,
        }
    }

    /// Compiles the programs. False: ecj cannot be fetched.
    fn compile(self, to: &Path) -> Result<bool> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/jvm/estimate");
        let mut command = match self {
            Self::Javac => {
                let mut javac = javac();
                javac.args(["--release", "8", "-Xlint:-options", "-sourcepath"]);
                javac.arg(&sources).arg("-d").arg(to);
                javac.arg(sources.join("Embedded.java"));
                javac
            }
            Self::Ecj => {
                let Some(ecj) = ecj(&to.with_extension("package"))? else {
                    return Ok(false);
                };
                let mut java = Command::new(format!("{JDK}/java"));
                java.arg("-cp").arg(ecj);
                java.arg("org.eclipse.jdt.internal.compiler.batch.Main");
                java.args(["-source", "1.5", "-target", "1.5", "-nowarn", "-g", "-d"]);
                java.arg(to).arg(&sources);
                java
            }
        };
        printed(&mut command)?;
        Ok(true)
    }
}

/// Returns Debian's ecj. None: it cannot be fetched.
fn ecj(folder: &Path) -> Result<Option<PathBuf>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("board/packages.sh");
    let found = Command::new(script)
        .args(["amd64", "bookworm", "libeclipse-jdt-core-java"])
        .output()?;
    if !found.status.success() {
        return Ok(None);
    }
    for package in String::from_utf8(found.stdout)?.lines() {
        printed(Command::new("dpkg-deb").arg("-x").arg(package).arg(folder))?;
    }
    Ok(Some(folder.join("usr/share/java/eclipse-jdt-core.jar")))
}

/// Counts the programs.
fn count(classes: &Path, session: &Path, option: &str) -> Result<()> {
    let mut varid = testbed()?.varid();
    varid.args(["exact", option, "-o"]).arg(session).arg("--");
    varid
        .arg(format!("{JDK}/java"))
        .arg("-cp")
        .arg(classes)
        .arg("Embedded");
    let output = varid.output()?;
    ensure!(
        output.status.success() && output.stdout == PRINTED.as_bytes(),
        "{output:?}"
    );
    Ok(())
}

fn estimate(session: &Path, arguments: &[&str]) -> Result<serde_json::Value> {
    let mut varid = testbed()?.varid();
    varid.args(["estimate", "--target", "jop-2011", "--summary", "json"]);
    let text = printed(varid.args(arguments).arg(session))?;
    Ok(serde_json::from_str(&text)?)
}

fn number(value: &serde_json::Value, key: &str) -> Result<u64> {
    value[key]
        .as_u64()
        .with_context(|| format!("{key} of {value}"))
}

/// Checks the estimates of one compiler's classes, all caches in one pass over one recorded order.
fn check(compiler: Compiler) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (classes, session) = (folder.path().join("classes"), folder.path().join("session"));
    fs::create_dir(&classes)?;
    if !compiler.compile(&classes)? {
        skipped("estimate", "Debian's ecj cannot be fetched");
        return Ok(());
    }
    count(&classes, &session, "--call-order")?;
    for (program, truth) in PROGRAMS {
        let method = format!("emb.{program}.run");
        let sweep = [
            "--sweep",
            "method_cache.size=1K,2K,4K",
            "--sweep",
            "method_cache.blocks=4,16",
        ];
        let found = estimate(
            &session,
            &[&["--within", method.as_str()], &sweep[..]].concat(),
        )?;
        ensure!(found["uncosted"] == serde_json::json!([]), "{found}");
        let caches = found["sweep"].as_array().context("a sweep")?;
        ensure!(caches.len() == 6, "{found}");
        for ((size, blocks), truth) in CACHES.into_iter().zip(truth) {
            let is_it =
                |cache: &&serde_json::Value| cache["size"] == size && cache["blocks"] == blocks;
            let cycles = number(caches.iter().find(is_it).context("a cache")?, "cycles")?;
            let error = cycles as f64 / truth as f64 - 1.0;
            eprintln!(
                "{compiler:?} {program} {size}/{blocks}: {cycles}, {:+.2} %",
                error * 100.0
            );
            ensure!(
                error.abs() <= compiler.most(),
                "{program} {size}/{blocks}: {cycles} for {truth}"
            );
        }
        // The default cache is one of those that are compared.
        ensure!(
            caches
                .iter()
                .any(|cache| cache["cycles"] == found["cycles"]),
            "{found}"
        );
    }
    // The bounds of the cache hold what the order of calls gives.
    let within = |more: &[&str]| {
        let found = estimate(&session, &[&["--within", "emb.Tasks.run"], more].concat())?;
        number(&found, "cycles")
    };
    let hit = within(&["--assume-cache", "hit"])?;
    let miss = within(&["--assume-cache", "miss"])?;
    let cycles = within(&[])?;
    ensure!(hit <= cycles && cycles <= miss, "{hit} {cycles} {miss}");
    check_written(&session, folder.path())
}

/// Checks that a session with costs says what was set and compared, that its costs are no exact counts, and that it can be estimated in turn.
fn check_written(session: &Path, folder: &Path) -> Result<()> {
    let written = folder.join("written");
    let output = written.to_str().context("a path")?;
    let priced = ["--within", "emb.Tasks.run", "--set", "method_cache.size=1K"];
    let compared = ["--sweep", "method_cache.blocks=4,16"];
    let settings = [&priced[..], &compared].concat();
    let found = estimate(session, &[&settings[..], &["-o", output]].concat())?;
    ensure!(estimate(&written, &settings)? == found, "{found}");
    let manifest = fs::read_to_string(written.join("session.json"))?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest)?;
    let swept = found["sweep"].as_array().context("a sweep")?.iter();
    let caches = swept.map(|cache| {
        serde_json::json!({ "size": 1024, "blocks": cache["blocks"], "cost": cache["cycles"] })
    });
    let expected = serde_json::json!([{
        "measure": "cycles (jop-2011)",
        "target": "jop-2011",
        "settings": ["method_cache.size=1K"],
        "within": "emb.Tasks.run",
        "caches": caches.collect::<Vec<_>>(),
    }]);
    ensure!(manifest["estimates"] == expected, "{manifest}");
    let mut report = testbed()?.varid();
    report.args(["report", "--measure", "cycles (jop-2011),calls"]);
    let text = printed(report.arg(&written))?;
    let cycles = number(&found, "cycles")?;
    ensure!(
        text.contains(&format!("(jop-2011) {cycles} cycles (estimated), calls ")),
        "{text}"
    );
    Ok(())
}

#[test]
fn estimates_of_programs_by_ecj_are_within_one_and_a_half_percent_of_hardware() -> Result<()> {
    if skip() {
        return Ok(());
    }
    check(Compiler::Ecj)
}

#[test]
fn estimates_of_programs_by_javac_are_within_the_paper_s_error() -> Result<()> {
    if skip() {
        return Ok(());
    }
    check(Compiler::Javac)
}

/// Without the order of calls the result is an interval, and the session has both of its ends as measures.
#[test]
fn without_the_order_of_calls_an_estimate_is_an_interval() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (classes, session) = (folder.path().join("classes"), folder.path().join("session"));
    let priced = folder.path().join("priced");
    fs::create_dir(&classes)?;
    Compiler::Javac.compile(&classes)?;
    count(&classes, &session, "--bytecodes")?;
    let output = priced.to_str().context("a path")?;
    let found = estimate(&session, &["--within", "emb.Sort.run", "-o", output])?;
    ensure!(
        found["cycles"].is_null() && number(&found, "low")? < number(&found, "high")?,
        "{found}"
    );
    for (measure, key) in [("least", "low"), ("most", "high")] {
        let measure = format!("{measure} cycles (jop-2011)");
        let mut report = testbed()?.varid();
        report.args([
            "report",
            "--by",
            "layer",
            "--format",
            "json",
            "--measure",
            &measure,
        ]);
        let text = printed(report.arg(&priced))?;
        ensure!(
            text.contains(&number(&found, key)?.to_string()),
            "{found} {text}"
        );
    }
    let mut sweep = testbed()?.varid();
    sweep.args([
        "estimate",
        "--target",
        "jop-2011",
        "--sweep",
        "method_cache.size=1K",
    ]);
    let output = sweep.arg(&session).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && error.contains("'varid exact --call-order' keeps it"),
        "{error}"
    );
    Ok(())
}
