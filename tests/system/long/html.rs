//! Tests an HTML report in a browser, and compares it with the text report and annotations.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use varid_tests::{App, judge, printed, record, skip_without_root, skipped, testbed};

/// Returns true if the dependencies of the test are present. Otherwise prints the reason.
fn can_run(test: &str) -> bool {
    if skip_without_root(test) {
        return false;
    }
    let has_browser = Command::new("chromium").arg("--version").output().is_ok();
    if !has_browser {
        skipped(test, "there is no browser: install chromium");
    }
    has_browser
}

#[test]
fn a_page_is_clicked_through_in_chromium() -> Result<()> {
    if !can_run("html") {
        return Ok(());
    }
    let recording = record(&App::new("scene", "run", 1500)?, &["-F", "1999"])?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let mut varid = testbed()?.varid();
    varid.args(["export", "-f", "html", "--no-inline", "-o"]);
    printed(
        varid
            .arg(path("page.html"))
            .arg("-i")
            .arg(recording.session()),
    )?;
    let mut varid = testbed()?.varid();
    varid.args(["report", "--by", "symbol", "--format", "json", "-i"]);
    std::fs::write(path("report"), printed(varid.arg(recording.session()))?)?;

    judge("html_report.py", [path("page.html")])?;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new("python3");
    python
        .arg("-B")
        .arg(tests.join("oracle/html_report.py"))
        .arg("--hostile");
    printed(python.arg(path("page.html")).arg(path("hostile.html")))?;
    let mut python = Command::new("python3");
    python.arg("-B").arg(tests.join("browser/report.py"));
    python.args(["page.html", "hostile.html", "report"].map(path));
    println!("html: {}", printed(&mut python)?);
    Ok(())
}

#[test]
fn a_method_s_code_is_that_of_annotate_and_each_event_has_its_samples() -> Result<()> {
    if !can_run("html code") {
        return Ok(());
    }
    let app = App::new("cradle", "run", 600)?;
    let recording = record(&app, &["-F", "1999", "-e", "cpu-clock,page-faults"])?;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir()?;
    let page = folder.path().join("page.html");
    let with_sources = |arguments: &[&str]| -> Result<String> {
        let mut varid = testbed()?.varid();
        varid.args(arguments).arg("--source-path");
        varid.arg(tests.join("workloads")).arg("-i");
        printed(varid.arg(recording.session()))
    };
    let path = page.to_str().context("a path that is no text")?;
    with_sources(&["report", "--html", path])?;
    judge("html_report.py", [&page])?;
    let mut python = Command::new("python3");
    python.arg("-B").arg(tests.join("browser/code.py"));
    python.arg(&page);
    // Native code with inlined functions, and bytecode.
    for method in ["raster_fill_circle", "FixedPoint.mul"] {
        let annotation = with_sources(&["annotate", method, "--format", "json"])?;
        let file = folder.path().join(method);
        std::fs::write(&file, annotation)?;
        python.arg(file);
    }
    println!("html code: {}", printed(&mut python)?);
    Ok(())
}

#[test]
fn a_page_of_measures_has_what_was_counted_and_no_times() -> Result<()> {
    if !can_run("html measures") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let app = App::new("math", "run", 1)?.arguments();
    let mut varid = testbed()?.varid();
    varid.args(["record", "--mode", "count-calls", "-o"]);
    // varid's agent in the VM counts.
    let counting = app.iter().filter(|word| *word != "--no-dim");
    printed(varid.arg(path("session")).arg("--").args(counting))?;
    let measures = ["--measure", "calls,returns"];
    let mut varid = testbed()?.varid();
    varid.args(["report", "--html"]).arg(path("page.html"));
    printed(varid.args(measures).arg("-i").arg(path("session")))?;
    judge("html_report.py", [path("page.html")])?;
    let mut varid = testbed()?.varid();
    varid.args(["report", "--by", "symbol", "--format", "json"]);
    let report = printed(varid.args(measures).arg("-i").arg(path("session")))?;
    std::fs::write(path("report"), report)?;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new("python3");
    python.arg("-B").arg(tests.join("browser/measures.py"));
    python.args(["page.html", "report"].map(path));
    println!("html measures: {}", printed(&mut python)?);
    Ok(())
}
