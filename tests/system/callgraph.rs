//! Is the call graph the one that the VM's own method trace shows?

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use varid_tests::{App, attach, judge, skip_without_root, testbed};

/// Traces one run and profiles another; compares their edges.
fn compare(method: &str, traced_rounds: u32, rounds: u32) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let trace = trace(method, traced_rounds, folder.path())?;
    let app = App::new("truth", method, rounds)?;
    // It runs already: of what comes before a VM is known, a copied stack shows the interpreter's frames only.
    let recording = attach(&app, &["-F", "9973", "--stack", "full"])?;
    let graph = folder.path().join("graph.json");
    let mut report = testbed()?.varid();
    report
        .args(["report", "--callgraph", "--format", "json", "-i"])
        .arg(recording.session());
    let output = report.output()?;
    ensure!(
        output.status.success(),
        "{report:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::write(&graph, output.stdout)?;
    let root = PathBuf::from(format!("org.example.truth.Main.{method}"));
    let found = judge("callgraph.py", [trace, root, recording.session(), graph])
        .context(method.to_owned())?;
    println!("{method}: {found}");
    ensure!(
        found["samples"].as_u64() > Some(500),
        "too few samples: {found}"
    );
    Ok(found)
}

/// The VM's own trace.
fn trace(method: &str, rounds: u32, folder: &Path) -> Result<PathBuf> {
    let file = folder.join("trace");
    let app = [
        "-Xmethod-trace",
        &format!("-Xmethod-trace-file:{}", file.display()),
        "-Xmethod-trace-file-size:200000000",
    ]
    .iter()
    .try_fold(App::new("truth", method, rounds)?, |app, option| {
        Ok::<_, anyhow::Error>(app.option("--vm-option").option(*option))
    })?;
    let output = app.command().output()?;
    ensure!(
        output.status.success(),
        "{app:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(file)
}

#[test]
fn every_edge_is_one_that_the_vm_traced_and_none_of_one_percent_is_missing() -> Result<()> {
    if skip_without_root("callgraph") {
        return Ok(());
    }
    let recursion = compare("recursion", 5, 30_000)?;
    ensure!(
        recursion["recursive frames"].as_u64() >= Some(60),
        "{recursion}"
    );
    // Native and managed code that call each other, eight levels deep.
    let jni = compare("jni", 5, 3000)?;
    ensure!(jni["of 1 % or more"].as_u64() >= Some(3), "{jni}");
    let others = [
        ("pingPong", 5, 60_000),
        ("exceptions", 2, 8000),
        ("interfaces", 1, 4000),
        ("virtual", 1, 10_000),
    ];
    for (method, traced, rounds) in others {
        compare(method, traced, rounds)?;
    }
    Ok(())
}
