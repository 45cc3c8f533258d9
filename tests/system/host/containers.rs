//! Tests that methods have names if the app's dex file is stored or compressed in a jar.

use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use varid_tests::{App, Recording, record, report_by_symbol, skip_without_root};

/// The number of samples that identify the methods of a run.
const ENOUGH: u64 = 1000;

/// Adds FILE as classes.dex to JAR, compressed or at an offset, by an independent ZIP writer.
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

/// The report of a run, from the detection of its VM on.
struct Run {
    /// The app's named methods, and their samples.
    methods: BTreeMap<String, u64>,
    /// The images of these methods.
    images: BTreeSet<String>,
    /// The user samples. Those in the kernel vary between machines.
    samples: u64,
    /// The samples before varid found the VM.
    early: u64,
}

impl Run {
    /// Runs an app until there are enough samples. varid may have waited for a processor during most of the first run.
    fn of(app: &App) -> Result<Self> {
        for _ in 0..5 {
            let run = Self::reported(&record(app, &["-F", "1999"])?)?;
            if run.samples >= ENOUGH && run.early * 4 < run.samples {
                return Ok(run);
            }
        }
        bail!("five runs without {ENOUGH} samples of a VM that was seen in time")
    }

    fn reported(recording: &Recording) -> Result<Self> {
        let report = report_by_symbol(&recording.session())?;
        let samples = report["samples"].as_u64().context("no samples")?;
        let early = report["unattributed"]["vm-not-ready"].as_u64().unwrap_or(0);
        let mut layers = report["layers"].as_array().into_iter().flatten();
        let kernel = layers.find(|row| row["layer"] == "kernel");
        let kernel = kernel.and_then(|row| row["self"].as_u64());
        let mut run = Self {
            methods: BTreeMap::new(),
            images: BTreeSet::new(),
            samples: samples.saturating_sub(early + kernel.unwrap_or(0)),
            early,
        };
        for row in report["rows"].as_array().context("no rows")? {
            let symbol = row["symbol"].as_str().unwrap_or_default();
            if symbol.starts_with("org.example.math.") {
                let samples = row["self"].as_u64().context("no self")?;
                run.methods.insert(symbol.to_owned(), samples);
                let image = row["image"].as_str().unwrap_or_default();
                run.images.insert(image.to_owned());
            }
        }
        Ok(run)
    }

    /// Returns the percentage of samples in the app's methods.
    fn share(&self) -> f64 {
        100.0 * self.methods.values().sum::<u64>() as f64 / self.samples as f64
    }

    /// Returns the methods that must also have samples in another run. If one run has 30 samples of a method, and as
    /// many are expected, none occur with a probability of 2^-30.
    fn certain_in<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a String> {
        let expected = |samples| samples * other.samples / self.samples;
        let certain = self.methods.iter();
        let certain = certain.filter(move |(_, samples)| expected(**samples) >= 30);
        certain.map(|(name, _)| name)
    }
}

#[test]
fn methods_in_a_jar_have_their_names() -> Result<()> {
    if skip_without_root("containers") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let math = App::new("math", "run", 30)?;
    let plain = Run::of(&math)?;
    println!("containers: {:?}, {:.1} %", plain.methods, plain.share());
    // ART copies files that are compressed or not at a multiple of four bytes, and maps the others.
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
        // The first file of the class path has the classes.
        let app = math
            .clone()
            .option("--dex")
            .option(jar.display().to_string());
        let run = Run::of(&app)?;
        println!(
            "containers: {how} at {front}: {:?}, {:.1} %, {:?}",
            run.methods,
            run.share(),
            run.images
        );
        ensure!(
            run.images.iter().all(|found| found.ends_with(image)),
            "{how} at {front}: {:?}",
            run.images
        );
        for (one, other) in [(&plain, &run), (&run, &plain)] {
            let certain: Vec<_> = one.certain_in(other).collect();
            let missing = certain
                .iter()
                .find(|name| !other.methods.contains_key(**name));
            ensure!(certain.len() >= 5, "{how} at {front}: only {certain:?}");
            ensure!(missing.is_none(), "{how} at {front}: {missing:?}");
        }
        ensure!(
            (run.share() - plain.share()).abs() < 15.0,
            "{how} at {front}: {} %, {} %",
            run.share(),
            plain.share()
        );
    }
    Ok(())
}
