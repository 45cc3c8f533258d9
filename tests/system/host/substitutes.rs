//! Tests that other tools find the same method, file and line at a method's addresses as dexdump.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use varid_symbolizer::dex::DexFile;
use varid_symbolizer::substitute::Substitute;
use varid_tests::{
    App, Scale, assembled_dex_files, dex_files, fetched_dex_files, judge, on_threads, record,
    scale, skip_without_root, testbed,
};

/// Writes the substitute of each dex file, and compares every reader with dexdump, with one file per processor at a
/// time. Returns the sums of the comparisons.
fn compare(files: &[PathBuf]) -> Result<(u64, u64)> {
    // The largest file takes as long as many others, so it is processed first.
    let mut files = files.iter().map(size).collect::<Result<Vec<_>>>()?;
    files.sort();
    let files = Mutex::new(files);
    let next = || files.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let compare_some = || -> Result<(u64, u64)> {
        let (mut methods, mut rows) = (0, 0);
        while let Some((_, file)) = next() {
            let said = compare_one(file).with_context(|| file.display().to_string())?;
            println!("substitutes: {}: {said}", file.display());
            methods += said["methods"].as_u64().context("no methods")?;
            rows += said["rows"].as_u64().context("no rows")?;
        }
        Ok((methods, rows))
    };
    let processors = std::thread::available_parallelism()?.get();
    let compared = on_threads(processors, compare_some)?;
    let sum = |all: (u64, u64), some: (u64, u64)| (all.0 + some.0, all.1 + some.1);
    Ok(compared.into_iter().fold((0, 0), sum))
}

fn size(file: &PathBuf) -> Result<(u64, &PathBuf)> {
    Ok((std::fs::metadata(file)?.len(), file))
}

/// Runs the oracle on one file's substitute.
fn compare_one(file: &PathBuf) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let elf = folder.path().join("substitute.elf");
    let dex = DexFile::from_vec(std::fs::read(file)?)?;
    Substitute::of_dex(&dex)?.write(&elf)?;
    judge("substitute.py", [&elf, file])
}

#[test]
fn every_reader_says_of_the_testbed_what_dexdump_says() -> Result<()> {
    let mut files = dex_files(&testbed()?.workloads)?;
    files.push(testbed()?.boot_dex());
    let (methods, rows) = compare(&files)?;
    ensure!(
        methods > 700 && rows > 3000,
        "{methods} methods, {rows} rows"
    );
    Ok(())
}

#[test]
fn every_reader_says_of_what_compilers_seldom_write_what_dexdump_says() -> Result<()> {
    let (methods, rows) = compare(&assembled_dex_files()?)?;
    ensure!(
        methods > 120 && rows > 100,
        "{methods} methods, {rows} rows"
    );
    Ok(())
}

#[test]
fn every_reader_says_of_real_apps_what_dexdump_says() -> Result<()> {
    let Some(files) = fetched_dex_files()? else {
        return Ok(());
    };
    let (least_methods, least_rows) = match scale() {
        Scale::Gate => (3000, 10_000),
        Scale::Long => (100_000, 300_000),
    };
    let (methods, rows) = compare(&files)?;
    ensure!(
        methods > least_methods && rows > least_rows,
        "{methods} methods, {rows} rows"
    );
    Ok(())
}

#[test]
fn perf_shows_the_lines_of_a_recording() -> Result<()> {
    if skip_without_root("substitutes") {
        return Ok(());
    }
    let app = App::new("math", "run", 20)?;
    let recording = record(&app, &["-F", "499"])?;
    let said = judge(
        "substitute_lines.py",
        [
            recording.session().join("perf.data"),
            app.dex(),
            testbed()?.boot_dex(),
        ],
    )?;
    println!("substitutes: {said}");
    let count = |key: &str| said[key].as_u64().unwrap_or_default();
    ensure!(
        count("frames") > count("samples") && count("methods") > 10 && count("lines") > 50,
        "{said}"
    );
    Ok(())
}
