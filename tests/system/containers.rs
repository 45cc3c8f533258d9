//! Do methods have their names when the app's dex file lies in a jar, stored or compressed?

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use varid_tests::{App, Recording, record, skip_without_root, testbed};

/// Puts FILE as classes.dex into JAR, compressed or behind so many bytes, with a ZIP writer that is not ours.
const JAR: &str = r#"
import sys, zipfile
jar, file, how, front = sys.argv[1:]
entry = zipfile.ZipInfo("classes.dex")
entry.compress_type = zipfile.ZIP_DEFLATED if how == "deflated" else zipfile.ZIP_STORED
with zipfile.ZipFile(jar, "w") as made, open(file, "rb") as dex:
    # A local header takes 30 bytes and its name: two of them stand in front of the dex file.
    made.writestr(zipfile.ZipInfo("x"), bytes(int(front) - 30 - 1 - 30 - len("classes.dex")))
    made.writestr(entry, dex.read())
"#;

/// The app's methods that a report names, each with the image that it is in, and the share of samples in them.
fn methods(recording: &Recording) -> Result<(BTreeSet<String>, BTreeSet<String>, f64)> {
    let output = testbed()?
        .varid()
        .args(["report", "--by", "symbol", "--format", "json", "-i"])
        .arg(recording.session())
        .output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let (mut names, mut images, mut share) = (BTreeSet::new(), BTreeSet::new(), 0.0);
    for row in report["rows"].as_array().context("no rows")? {
        let symbol = row["symbol"].as_str().unwrap_or_default();
        if symbol.starts_with("org.example.math.") {
            names.insert(symbol.to_owned());
            images.insert(row["image"].as_str().unwrap_or_default().to_owned());
            share += row["self_percent"].as_f64().unwrap_or(0.0);
        }
    }
    Ok((names, images, share))
}

#[test]
fn methods_in_a_jar_have_their_names() -> Result<()> {
    if skip_without_root("containers") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let math = App::new("math", "run", 30)?;
    let plain = methods(&record(&math, &["-F", "1999"])?)?;
    println!("containers: {} methods, {:.1} %", plain.0.len(), plain.2);
    // ART copies what is compressed, or does not lie at a multiple of four bytes, and maps the rest.
    for (how, front, image) in [
        ("deflated", 100, "anon"),
        ("stored", 101, "anon"),
        ("stored", 104, "stored-104.jar"),
        ("stored", 4096, "stored-4096.jar"),
    ] {
        let jar = folder.path().join(format!("{how}-{front}.jar"));
        let written = Command::new("python3")
            .args(["-c", JAR])
            .args([jar.as_path(), &math.dex(), Path::new(how)])
            .arg(front.to_string())
            .status()?;
        ensure!(written.success(), "no jar");
        // The first of the class path has the classes.
        let app = math
            .clone()
            .option("--dex")
            .option(jar.display().to_string());
        let (names, images, share) = methods(&record(&app, &["-F", "1999"])?)?;
        println!(
            "containers: {how} at {front}: {} methods, {share:.1} %, {images:?}",
            names.len()
        );
        ensure!(
            images.iter().all(|found| found.ends_with(image)),
            "{how} at {front}: {images:?}"
        );
        let unknown: Vec<_> = names.difference(&plain.0).collect();
        let common = names.intersection(&plain.0).count();
        // Both saw all that is ever sampled, but for what is hardly ever.
        ensure!(
            common * 10 >= plain.0.len() * 8 && unknown.len() * 10 <= names.len() * 2,
            "{how} at {front}: {names:?}\nand not {:?}",
            plain.0
        );
        ensure!(
            (share - plain.2).abs() < 15.0,
            "{how} at {front}: {share} %, {} %",
            plain.2
        );
    }
    Ok(())
}
