//! Do other tools say of a method's addresses what dexdump says: which method, which file, which line?

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use varid_symbolizer::dex::DexFile;
use varid_symbolizer::substitute::Substitute;
use varid_tests::{
    App, assembled_dex_files, dex_files, fetched_dex_files, judge, record, skip_without_root,
    testbed,
};

/// Writes the substitute of each dex file and lets every reader be compared with dexdump; the sum of what was compared.
fn compare(files: &[PathBuf]) -> Result<(u64, u64)> {
    let folder = tempfile::tempdir()?;
    let (mut methods, mut rows) = (0, 0);
    for file in files {
        let elf = folder.path().join("substitute.elf");
        let dex = DexFile::from_vec(std::fs::read(file)?)?;
        Substitute::of_dex(&dex)?.write(&elf)?;
        let said =
            judge("substitute.py", [&elf, file]).with_context(|| file.display().to_string())?;
        println!("substitutes: {}: {said}", file.display());
        methods += said["methods"].as_u64().context("no methods")?;
        rows += said["rows"].as_u64().context("no rows")?;
    }
    Ok((methods, rows))
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
    let (methods, rows) = compare(&files)?;
    ensure!(
        methods > 100_000 && rows > 300_000,
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
    let recording = record(&app, &["-F", "1999"])?;
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
