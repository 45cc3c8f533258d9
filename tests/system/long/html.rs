//! Does an HTML report do in a browser what it says, and show what the text report has?

use anyhow::Result;
use std::path::Path;
use std::process::Command;
use varid_tests::{App, judge, printed, record, skip_without_root, skipped, testbed};

#[test]
fn a_page_is_clicked_through_in_chromium() -> Result<()> {
    if skip_without_root("html") {
        return Ok(());
    }
    if Command::new("chromium").arg("--version").output().is_err() {
        skipped("html", "there is no browser: install chromium");
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
