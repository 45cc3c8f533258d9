//! Is the call graph the one that the VM's own method trace shows?

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use varid_tests::{App, attach, judge, printed, skip_without_root, testbed};

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
    std::fs::write(&graph, printed(&mut report)?)?;
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

/// Every edge is one that the VM traced, and none of one percent is missing; None: skipped aloud.
fn edges(method: &str, traced_rounds: u32, rounds: u32) -> Result<Option<Value>> {
    if skip_without_root("callgraph") {
        return Ok(None);
    }
    compare(method, traced_rounds, rounds).map(Some)
}

#[test]
fn the_edges_of_a_recursion_are_those_that_the_vm_traced() -> Result<()> {
    let Some(recursion) = edges("recursion", 5, 30_000)? else {
        return Ok(());
    };
    ensure!(
        recursion["recursive frames"].as_u64() >= Some(60),
        "{recursion}"
    );
    Ok(())
}

/// Eight levels deep.
#[test]
fn the_edges_of_native_and_managed_code_that_call_each_other_are_those_that_the_vm_traced()
-> Result<()> {
    let Some(jni) = edges("jni", 5, 3000)? else {
        return Ok(());
    };
    ensure!(jni["of 1 % or more"].as_u64() >= Some(3), "{jni}");
    Ok(())
}

#[test]
fn the_edges_of_a_mutual_recursion_are_those_that_the_vm_traced() -> Result<()> {
    edges("pingPong", 5, 60_000).map(drop)
}

#[test]
fn the_edges_of_exceptions_are_those_that_the_vm_traced() -> Result<()> {
    edges("exceptions", 2, 8000).map(drop)
}

#[test]
fn the_edges_of_interface_calls_are_those_that_the_vm_traced() -> Result<()> {
    edges("interfaces", 1, 4000).map(drop)
}

#[test]
fn the_edges_of_virtual_calls_are_those_that_the_vm_traced() -> Result<()> {
    edges("virtual", 1, 10_000).map(drop)
}
