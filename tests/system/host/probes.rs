//! Tests that each hit of a probe has a sample with its stack. The ground truth is the number of calls of the function.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use varid_tests::{
    App, compile, manifest, record, report_by_symbol, row_of, skip_without_root, skipped, testbed,
};

const THREADS: u64 = 4;
/// Calls of each thread. The ring has space for all their samples, however late it is read.
const CALLS: u64 = 5_000;

/// Returns true if the test must be skipped because probes are not available.
fn skip(test: &str) -> bool {
    let pmu = Path::new("/sys/bus/event_source/devices/uprobe/type");
    if !pmu.exists() {
        skipped(test, "the kernel has no uprobes");
        return true;
    }
    skip_without_root(test)
}

/// The program with the probed function, and a folder for its sessions.
struct Probed {
    folder: tempfile::TempDir,
}

impl Probed {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        compile("probed", folder.path())?;
        Ok(Self { folder })
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("probed")
    }

    /// Records the program until it ends. It calls the function a fixed number of times.
    fn record(&self, options: &[&str]) -> Result<PathBuf> {
        let session = self.folder.path().join("session");
        let output = testbed()?
            .varid()
            .args(["record", "--ring-pages", "16384"])
            .args(options)
            .arg("-o")
            .arg(&session)
            .arg("--")
            .arg(self.program())
            .args([THREADS.to_string(), CALLS.to_string()])
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}\n{said}", output.status);
        let printed = String::from_utf8_lossy(&output.stdout);
        let calls: u64 = printed.trim().parse()?;
        ensure!(calls == THREADS * CALLS, "{printed}");
        Ok(session)
    }

    fn event(&self, kind: &str, place: &str) -> String {
        format!("{kind}:{}:{place}", self.program().display())
    }
}

/// Returns the self and total samples of a function.
fn samples_in(report: &Value, symbol: &str) -> Result<(u64, u64)> {
    let row = row_of(report, symbol)?;
    let count = |field: &str| row[field].as_u64().context("a count");
    Ok((count("self")?, count("total")?))
}

#[test]
fn each_call_of_a_function_has_a_sample_below_its_caller() -> Result<()> {
    if skip("uprobes") {
        return Ok(());
    }
    let probed = Probed::new()?;
    let event = probed.event("uprobe", "probed_leaf");
    let session = probed.record(&["-e", &event])?;
    let report = report_by_symbol(&session)?;
    // Threads preempt each other during samples, without losing any.
    let calls = THREADS * CALLS;
    let leaf = samples_in(&report, "probed_leaf")?;
    let caller = samples_in(&report, "probed_caller")?;
    let manifest = manifest(&session)?;
    let counts = &manifest["counts"];
    ensure!(leaf == (calls, calls), "{leaf:?} of {calls}: {counts}");
    ensure!(caller == (0, calls), "{caller:?} of {calls}: {counts}");
    ensure!(counts["lost"] == 0, "{counts}");
    Ok(())
}

#[test]
fn a_period_of_hits_has_one_sample() -> Result<()> {
    if skip("periods of uprobes") {
        return Ok(());
    }
    let probed = Probed::new()?;
    let event = probed.event("uprobe", "probed_leaf");
    let session = probed.record(&["-c", "10", "-e", &event])?;
    let samples = samples_in(&report_by_symbol(&session)?, "probed_leaf")?;
    // All threads run on one CPU.
    ensure!(samples.0 == THREADS * CALLS / 10, "{samples:?}");
    Ok(())
}

#[test]
fn a_return_has_a_sample_in_the_caller() -> Result<()> {
    if skip("uretprobes") {
        return Ok(());
    }
    let probed = Probed::new()?;
    let event = probed.event("uretprobe", "probed_leaf");
    let session = probed.record(&["-e", &event])?;
    let samples = samples_in(&report_by_symbol(&session)?, "probed_caller")?;
    ensure!(samples.0 == THREADS * CALLS, "{samples:?}");
    Ok(())
}

#[test]
fn a_probe_in_a_native_library_has_the_methods_that_called_it() -> Result<()> {
    if skip("uprobes below methods") {
        return Ok(());
    }
    const ROUNDS: u32 = 25;
    const PROBED: &str = "Java_org_example_waits_Native_sleep";
    let app = App::new("waits", "waits", ROUNDS)?;
    let library = app.library().context("no library")?;
    let event = format!("uprobe:{}:{PROBED}", library.display());
    let recording = record(&app, &["-e", &event])?;
    let report = report_by_symbol(&recording.session())?;
    let (hits, _) = samples_in(&report, PROBED)?;
    // Native methods are known once the VM is. Some hits at the start of an app may precede that.
    let known = methods_of_hits(&recording.session())?;
    ensure!(known.len() as u64 == hits, "{} of {hits}", known.len());
    let first = known.iter().position(|known| *known);
    let first = first.with_context(|| format!("no hit is in the method: {report}"))?;
    ensure!(
        known.iter().skip(first).all(|known| *known),
        "in the method, by time: {known:?}"
    );
    let (_, of_nap) = samples_in(&report, "org.example.waits.Naps.nap20")?;
    ensure!(of_nap == u64::from(ROUNDS), "{of_nap} naps: {report}");
    Ok(())
}

#[test]
fn what_cannot_be_probed_is_said_before_the_command_runs() -> Result<()> {
    if skip("impossible uprobes") {
        return Ok(());
    }
    let probed = Probed::new()?;
    let ran = probed.folder.path().join("ran");
    for (event, said) in [
        (
            probed.event("uprobe", "probed_lef"),
            "no function is called 'probed_lef'. It has 'probed_leaf'",
        ),
        (
            "uprobe:/no/such/file:main".to_owned(),
            "/no/such/file: No such file or directory",
        ),
        (
            probed.event("uprobe", "0x10"),
            "the file has no code at address 0x10",
        ),
        (
            "probe_none:nothing".to_owned(),
            "tracefs has no probe 'probe_none:nothing'",
        ),
    ] {
        let output = testbed()?
            .varid()
            .args(["record", "-e", &event, "-o"])
            .arg(probed.folder.path().join("none"))
            .arg("--")
            .arg("touch")
            .arg(&ran)
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && text.contains(said), "{text}");
        ensure!(!ran.exists(), "{event}: the command has run");
    }
    Ok(())
}

/// Returns, in time order, whether a hit is in the native method of the library's function.
fn methods_of_hits(session: &Path) -> Result<Vec<bool>> {
    let output = testbed()?
        .varid()
        .args(["export", "-q", "-f", "jsonl", "-o", "-", "-i"])
        .arg(session)
        .output()?;
    ensure!(output.status.success(), "{}", output.status);
    let mut hits = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let sample: Value = serde_json::from_str(line)?;
        let (Some(time), Some(frames)) = (sample["time_ns"].as_u64(), sample["frames"].as_array())
        else {
            continue;
        };
        let of_method = |frame: &Value| frame["symbol"] == "org.example.waits.Native.sleep";
        hits.push((time, frames.iter().any(of_method)));
    }
    hits.sort_unstable();
    Ok(hits.into_iter().map(|(_, known)| known).collect())
}
