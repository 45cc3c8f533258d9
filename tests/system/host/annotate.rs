//! Tests that each instruction of an annotated method has the samples that perf finds at its address, and matches the
//! output of dexdump and objdump.

use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::path::Path;
use varid_tests::{App, judge, printed, record, report_by_symbol, skip_without_root, testbed};

/// Returns `varid annotate`'s JSON.
fn annotated(session: &Path, method: &str) -> Result<String> {
    printed(
        testbed()?
            .varid()
            .args(["annotate", method, "--format", "json", "-i"])
            .arg(session),
    )
}

/// Returns the methods of an image with the most self samples.
fn hottest(session: &Path, image: &str, count: usize) -> Result<Vec<String>> {
    let report = report_by_symbol(session)?;
    let rows = report["rows"].as_array().context("no rows")?.iter();
    let names = rows.filter(|row| row["image"] == image);
    let names = names.filter_map(|row| Some(row["symbol"].as_str()?.to_owned()));
    Ok(names.take(count).collect())
}

/// Compares the methods with the results of other programs. Returns the number of compared samples.
fn compare(session: &Path, methods: &[String], code: &Path) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let mut samples = 0;
    for method in methods {
        let file = folder.path().join("annotation.json");
        std::fs::write(&file, annotated(session, method)?)?;
        let perf_data = session.join("perf.data");
        let arguments: [&OsStr; 3] = [perf_data.as_ref(), file.as_ref(), code.as_ref()];
        let compared = judge("annotate.py", arguments).with_context(|| method.clone())?;
        println!("{method}: {compared}");
        samples += compared["samples"].as_u64().context("no samples")?;
    }
    Ok(samples)
}

#[test]
fn every_instruction_of_bytecode_is_dexdumps_with_the_samples_that_perf_finds() -> Result<()> {
    if skip_without_root("annotated bytecode") {
        return Ok(());
    }
    let app = App::new("math", "run", 40)?;
    let recording = record(&app, &["-F", "4999"])?;
    let session = recording.session();
    let methods = hottest(&session, "math.dex", 8)?;
    ensure!(methods.len() == 8, "few methods: {methods:?}");
    let samples = compare(&session, &methods, &app.dex())?;
    ensure!(samples > 1000, "{samples} samples are too few");
    // With sources, as in normal use.
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/math");
    let text = printed(
        testbed()?
            .varid()
            .args(["annotate", "Linpack.daxpy", "--source-path"])
            .arg(&sources)
            .arg("-i")
            .arg(&session),
    )?;
    let line = "dy[iy + dy_off] += da * dx[ix + dx_off];";
    ensure!(text.contains(line) && text.contains("mul-double"), "{text}");
    Ok(())
}

#[test]
fn every_native_instruction_is_objdumps_with_the_samples_that_perf_annotates() -> Result<()> {
    if skip_without_root("annotated native code") {
        return Ok(());
    }
    let app = App::new("cradle", "run", 600)?;
    let library = app.library().context("no library")?;
    let recording = record(&app, &["-F", "4999", "--stack", "full"])?;
    let session = recording.session();
    let methods = hottest(&session, "libcradle.so", 3)?;
    let samples = compare(&session, &methods, &library)?;
    ensure!(samples > 1000, "{samples} samples are too few");
    Ok(())
}
