//! Tests that a session is the same on another machine as on the recorded one.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tests::{App, Recording, record, skip_without_root, testbed};

/// A session in another folder than at the recording, with missing files.
struct Elsewhere {
    folder: tempfile::TempDir,
    /// A folder of the recorded machine that is hidden.
    hidden: PathBuf,
    /// The original folder of the session.
    _recording: Recording,
}

impl Elsewhere {
    /// Records, moves the session, and marks it as recorded on another machine.
    fn record(app: &App) -> Result<Self> {
        let recording = record(app, &["-F", "4999", "--stack", "full"])?;
        let folder = tempfile::tempdir()?;
        let session = folder.path().join("session");
        recording.move_session(&session)?;
        let manifest = session.join("session.json");
        let mut json: Value = serde_json::from_slice(&std::fs::read(&manifest)?)?;
        json["host"]["machine"] = "elsewhere".into();
        std::fs::write(&manifest, json.to_string())?;
        Ok(Self {
            hidden: testbed()?.workloads.clone(),
            folder,
            _recording: recording,
        })
    }

    /// Makes a new folder beside the session.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Runs `varid report --by line`, with or without the contents of the hidden folder.
    fn report(&self, hide: bool, options: &[&Path]) -> Result<Value> {
        let mut report = testbed()?.varid();
        report
            .args(["report", "--by", "line", "--format", "json", "-i"])
            .arg(self.folder.path().join("session"))
            .args(options);
        if hide {
            let mut inside = Command::new("unshare");
            inside
                .args(["--mount", "sh", "-c"])
                .arg("mount -t tmpfs none \"$0\" && exec \"$@\"")
                .arg(&self.hidden)
                .arg(report.get_program())
                .args(report.get_args());
            report = inside;
        }
        let output = report.output()?;
        ensure!(
            output.status.success(),
            "{report:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// Returns the rows of images with this name.
fn rows(report: &Value, image: &str) -> Result<Vec<Value>> {
    let rows = report["rows"].as_array().context("no rows")?.iter();
    Ok(rows.filter(|row| row["image"] == image).cloned().collect())
}

/// Returns the missing information about the file with this name.
fn missing<'r>(report: &'r Value, name: &str) -> Option<&'r Value> {
    let mut all = report["missing"].as_array()?.iter();
    all.find(|missing| {
        missing["file"]
            .as_str()
            .is_some_and(|file| file.ends_with(name))
    })
}

#[test]
fn what_is_missing_is_named_and_found_in_folders_that_are_given() -> Result<()> {
    if skip_without_root("elsewhere") {
        return Ok(());
    }
    let app = App::new("cradle", "run", 1500)?;
    let elsewhere = Elsewhere::record(&app)?;
    let library = app.library().context("no library")?;
    let name = "libcradle.so";
    let whole = elsewhere.report(false, &[])?;
    let expected = rows(&whole, name)?;
    ensure!(expected.iter().filter(|row| row["line"].is_u64()).count() > 10);
    ensure!(missing(&whole, name).is_none(), "{}", whole["missing"]);

    // Dex code has its names and lines in the session.
    let hidden = elsewhere.report(true, &[])?;
    ensure!(rows(&hidden, "cradle.dex")? == rows(&whole, "cradle.dex")?);
    ensure!(!rows(&whole, "cradle.dex")?.is_empty());
    let told = missing(&hidden, name).context("nothing is said of the library")?;
    println!("{told}");
    let build_id = Command::new("readelf").arg("-n").arg(&library).output()?;
    let build_id = String::from_utf8_lossy(&build_id.stdout).into_owned();
    let build_id = build_id
        .lines()
        .find_map(|line| line.split_once("Build ID: "));
    ensure!(told["build_id"].as_str() == build_id.map(|(_, id)| id.trim()));
    ensure!(
        told["what"] == "file" && told["samples"].as_u64() > Some(100),
        "{told}"
    );
    let unnamed = rows(&hidden, name)?;
    ensure!(!unnamed.is_empty() && unnamed.iter().all(|row| row["line"].is_null()));

    // Once as the root of the recorded machine's file system, and once as any folder with the file under any name.
    let root = elsewhere.folder("root")?;
    let inside = root.join(library.strip_prefix("/")?);
    std::fs::create_dir_all(inside.parent().context("no folder")?)?;
    std::fs::copy(&library, &inside)?;
    let found = elsewhere.report(true, &[Path::new("--symfs"), &root])?;
    ensure!(rows(&found, name)? == expected);
    ensure!(missing(&found, name).is_none(), "{}", found["missing"]);
    let pulled = elsewhere.folder("pulled/deep")?;
    std::fs::copy(&library, pulled.join("any.name"))?;
    let empty = elsewhere.folder("empty")?;
    let symbols = Path::new("--symbols");
    let found = elsewhere.report(
        true,
        &[symbols, &empty, symbols, &elsewhere.folder("pulled")?],
    )?;
    ensure!(rows(&found, name)? == expected);

    // Another build of the file is not used.
    std::fs::copy(testbed()?.workloads.join("libtruth.so"), &inside)?;
    let other = elsewhere.report(true, &[Path::new("--symfs"), &root])?;
    ensure!(rows(&other, name)? == unnamed);
    let why = missing(&other, name).and_then(|told| told["why"].as_str());
    ensure!(why.is_some_and(|why| why.contains("build-id")), "{why:?}");
    Ok(())
}

#[test]
fn a_mapping_file_gives_names_and_lines_of_the_source() -> Result<()> {
    if skip_without_root("mapping") {
        return Ok(());
    }
    let recording = record(&App::new("math", "run", 30)?, &["-F", "4999"])?;
    // R8's mapping as if daxpy's inner loop had been a method of another class.
    let mapping = recording.session().join("mapping.txt");
    std::fs::write(
        &mapping,
        "\
com.acme.Solver -> org.example.math.Linpack:
# {\"id\":\"sourceFile\",\"fileName\":\"Solver.kt\"}
    1:138:void scale(int,double,double[],int,double[],int):1001:1138 -> daxpy
    139:200:void com.acme.Inner.loop(double[]):39:100 -> daxpy
    139:200:void scale(int,double,double[],int,double[],int):1200 -> daxpy
",
    )?;
    let report = |options: &[&Path]| -> Result<Value> {
        let mut command = testbed()?.varid();
        command
            .args(["report", "--by", "line", "--format", "json", "-i"])
            .arg(recording.session())
            .args(options);
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{command:?}: {said}");
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let (plain, mapped) = (report(&[])?, report(&[Path::new("--mapping"), &mapping])?);
    let mut compared = 0;
    for row in rows(&plain, "math.dex")? {
        let Some(line) = row["line"].as_u64() else {
            continue;
        };
        let mut expected = row.clone();
        if row["symbol"] == "org.example.math.Linpack.daxpy" {
            if line >= 139 {
                expected["symbol"] = "com.acme.Inner.loop".into();
                expected["file"] = "Inner.java".into();
                expected["line"] = (line - 100).into();
                expected["inlined"] = true.into();
            } else {
                expected["symbol"] = "com.acme.Solver.scale".into();
                expected["recorded_symbol"] = row["symbol"].clone();
                expected["file"] = "Solver.kt".into();
                expected["line"] = (line + 1000).into();
            }
            compared += 1;
        } else if let Some(method) = row["symbol"]
            .as_str()
            .and_then(|symbol| symbol.strip_prefix("org.example.math.Linpack."))
        {
            let renamed = format!("com.acme.Solver.{method}");
            let mut rows = rows(&mapped, "math.dex")?.into_iter();
            ensure!(
                rows.any(
                    |row| row["symbol"] == renamed && row["recorded_symbol"] == expected["symbol"]
                ),
                "{row} should have become {renamed}"
            );
            continue;
        }
        ensure!(
            rows(&mapped, "math.dex")?.contains(&expected),
            "{row} should have become {expected}"
        );
    }
    ensure!(compared > 2, "{compared} lines of daxpy");
    // All samples of daxpy are also in its caller.
    let of = |report: &Value, symbol: &str| -> Result<u64> {
        let rows = rows(report, "math.dex")?.into_iter();
        let counts = rows
            .filter(|row| row["symbol"] == symbol)
            .map(|row| row["self"].as_u64());
        Ok(counts.flatten().sum())
    };
    let before = of(&plain, "org.example.math.Linpack.daxpy")?;
    let after = of(&mapped, "com.acme.Inner.loop")? + of(&mapped, "com.acme.Solver.scale")?;
    ensure!(
        before == after && before > 100,
        "{before} samples became {after}"
    );
    Ok(())
}
