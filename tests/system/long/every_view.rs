//! Tests that a recording of each workload, interpreted and compiled, has the same samples in every view and export.

use anyhow::{Result, ensure};
use std::path::Path;
use varid_tests::{
    App, Code, Recording, Release, export_all, judge, printed, record, skip_without_root, testbed,
    viewers_read,
};

/// One event.
const CLOCK: &[&str] = &["-F", "1999", "-e", "cpu-clock"];
/// One event, with off-CPU time.
const WAITS: &[&str] = &["-F", "1999", "-e", "cpu-clock", "--off-cpu"];
/// Several events of all kinds that exist without a PMU.
const EVENTS: &[&str] = &[
    "-F",
    "997",
    "-e",
    "cpu-clock,context-switches,page-faults",
    "--off-cpu",
];

/// A workload's method with its rounds, interpreted and compiled, and the recording options.
const RUNS: [(&str, &str, [u32; 2], &[&str]); 8] = [
    ("math", "run", [25, 60], CLOCK),
    ("cradle", "run", [500, 700], CLOCK),
    ("scene", "run", [240, 400], EVENTS),
    ("truth", "run", [150, 200], CLOCK),
    ("jit", "run", [10, 10], WAITS),
    ("odd", "run", [6, 6], CLOCK),
    ("waits", "waits", [25, 25], EVENTS),
    ("vm", "run", [6, 6], CLOCK),
];

/// Checks every view and export of a recording.
fn is_right(what: &str, recording: &Recording) -> Result<()> {
    let session = recording.session();
    let varid = testbed()?.release.join("varid");
    let views = judge(
        "every_view.py",
        [Path::new("views"), &varid, session.as_path()],
    )?;
    let folder = tempfile::tempdir()?;
    let plain = ["--by-samples", "--no-inline", "--no-lines"];
    export_all(&session, folder.path(), &plain, "symbol")?;
    let arguments = [Path::new("samples"), folder.path()];
    let exported = judge("exports.py", arguments)?;
    let drawn = viewers_read(folder.path(), &exported)?;
    ensure!(drawn.contains("PROGRAM TOTALS"), "{what}: {drawn}");
    println!("{what}: views of {views}, {} formats", exported["formats"]);
    Ok(())
}

/// Checks the comparison of two recordings, and that its page can be written.
fn differs_rightly(what: &str, a: &Recording, b: &Recording) -> Result<()> {
    let (a, b) = (a.session(), b.session());
    let varid = testbed()?.release.join("varid");
    let compared = judge("every_view.py", [Path::new("diff"), &varid, &a, &b])?;
    let folder = tempfile::tempdir()?;
    let page = folder.path().join("page.html");
    let mut varid = testbed()?.varid();
    printed(
        varid
            .arg("diff")
            .args([&a, &b])
            .args([Path::new("--html"), &page]),
    )?;
    judge_page(&page)?;
    println!("{what}: diff of {compared} samples");
    Ok(())
}

/// Checks that a page complies with its content security policy.
fn judge_page(page: &Path) -> Result<()> {
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/html_report.py");
    let mut python = std::process::Command::new("python3");
    printed(python.arg("-B").arg(oracle).arg("--policy").arg(page)).map(drop)
}

#[test]
fn every_view_of_interpreted_and_compiled_workloads_has_the_same_samples() -> Result<()> {
    if skip_without_root("every view") {
        return Ok(());
    }
    for (name, method, [rounds, compiled_rounds], options) in RUNS {
        let interpreted = record(&App::new(name, method, rounds)?, options)?;
        is_right(&format!("{name}, interpreted"), &interpreted)?;
        let app = App::new(name, method, compiled_rounds)?.executed_by(Code::Jit)?;
        let compiled = record(&app, options)?;
        is_right(&format!("{name}, compiled"), &compiled)?;
        differs_rightly(name, &interpreted, &compiled)?;
    }
    Ok(())
}

#[test]
fn every_view_of_workloads_in_art_14_has_the_same_samples() -> Result<()> {
    if skip_without_root("every view") {
        return Ok(());
    }
    for (name, rounds) in [("math", 25), ("scene", 240)] {
        let app = App::new(name, "run", rounds)?.in_release(Release::Art14);
        let interpreted = record(&app, CLOCK)?;
        is_right(&format!("{name} in nterp"), &interpreted)?;
        let full = [CLOCK, &["--stack", "full"]].concat();
        let compiled = record(&app.executed_by(Code::Jit)?, &full)?;
        is_right(&format!("{name} of ART 14's JIT"), &compiled)?;
        differs_rightly(name, &interpreted, &compiled)?;
    }
    Ok(())
}
