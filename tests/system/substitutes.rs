//! Do other tools say of a method's addresses what dexdump says: which method, which file, which line?

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_symbolizer::dex::DexFile;
use varid_symbolizer::substitute::Substitute;
use varid_tests::{App, judge, record, skip_without_root, testbed};

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

/// The dex files of a folder and of those in it, sorted.
fn dex_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(dex_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "dex") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The dex files that a script of `tests/corpus` makes below the target folder.
fn corpus(script: &str, name: &str) -> Result<Vec<PathBuf>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = here.join("corpus").join(script);
    let beside = testbed()?.workloads.with_file_name("corpus").join(name);
    let output = Command::new(&script).arg(&beside).output()?;
    ensure!(
        output.status.success(),
        "{}: {}",
        script.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    dex_files(&beside)
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
    let (methods, rows) = compare(&corpus("build.sh", "smali")?)?;
    ensure!(
        methods > 120 && rows > 100,
        "{methods} methods, {rows} rows"
    );
    Ok(())
}

#[test]
fn every_reader_says_of_real_apps_what_dexdump_says() -> Result<()> {
    let (methods, rows) = compare(&corpus("fetch.sh", "apps")?)?;
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
