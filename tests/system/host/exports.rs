//! Tests that the viewers of all exported formats show the same methods with the same shares.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use varid_tests::{
    App, export_all, judge, methods_by_perf, record, skip_without_root, viewers_read,
};

/// Returns the total of the app's outermost method in a JSON report, with thousands separators.
fn cost_of_run(report: &Path) -> Result<String> {
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report)?)?;
    let rows = report["rows"].as_array().context("no rows")?;
    let run = rows.iter().filter(|row| {
        let symbol = row["symbol"].as_str();
        symbol == Some("org.example.scene.Main.run")
    });
    // The rows are the method's lines. Each sample is in one of them.
    let total: u64 = run.filter_map(|row| row["total_period"].as_u64()).sum();
    let digits = total.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    Ok(String::from_utf8(groups.join(&b','))?)
}

#[test]
fn all_formats_have_the_same_ten_methods_with_the_same_weights() -> Result<()> {
    if skip_without_root("exports") {
        return Ok(());
    }
    let recording = record(&App::new("scene", "run", 240)?, &["-F", "1999"])?;
    let session = recording.session();
    let folder = tempfile::tempdir()?;

    let plain = ["--by-samples", "--no-inline", "--no-lines"];
    export_all(&session, folder.path(), &plain, "symbol")?;
    let arguments = ["samples".into(), folder.path().to_owned()];
    let found = judge("exports.py", arguments)?;
    println!("exports: {found}");
    // perf has counted the app's own samples as well.
    let perf = methods_by_perf(&session.join("perf.data"), &[])?;
    for (name, samples) in found["heaviest"].as_object().context("no methods")? {
        if name.starts_with("org.example.") {
            ensure!(perf.get(name) == samples.as_u64().as_ref(), "{perf:?}");
        }
    }

    export_all(&session, folder.path(), &[], "line")?;
    let arguments = ["periods".into(), folder.path().to_owned()];
    let found = judge("exports.py", arguments)?;
    let annotated = viewers_read(folder.path(), &found)?;
    let run = annotated.lines().find(|line| line.contains("Main.run "));
    let run = run.context("no Main.run")?;
    let cost = cost_of_run(&folder.path().join("report"))?;
    ensure!(run.contains(&cost), "{run}");
    Ok(())
}
