//! Tests that the call graph matches the VM's own method trace.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use varid_tests::{App, attach, judge, printed, skip_without_root, testbed};

/// Enough rounds to distinguish the work of each round from one-time work.
const TRACED_ROUNDS: u32 = 5;

/// Traces one run, profiles another, and compares their edges.
fn compare(method: &str, rounds: u32) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("trace");
    App::new("truth", method, TRACED_ROUNDS)?.trace_to(&trace)?;
    let app = App::new("truth", method, rounds)?;
    // Attaches to a running app: before the VM is known, a copied stack only has the interpreter's frames.
    let recording = attach(&app, &["-F", "4999", "--stack", "full"])?;
    let graph = folder.path().join("graph.json");
    let mut report = testbed()?.varid();
    report
        .args(["report", "--callgraph", "--format", "json", "-i"])
        .arg(recording.session());
    std::fs::write(&graph, printed(&mut report)?)?;
    let root = PathBuf::from(format!("org.example.truth.Main.{method}"));
    let arguments = [
        trace,
        TRACED_ROUNDS.to_string().into(),
        root,
        recording.session(),
        graph,
    ];
    let found = judge("callgraph.py", arguments).context(method.to_owned())?;
    println!("{method}: {found}");
    ensure!(
        found["of 1 % or more"].as_u64() >= Some(1),
        "nothing must be found: {found}"
    );
    ensure!(
        found["samples"].as_u64() > Some(500),
        "too few samples: {found}"
    );
    Ok(found)
}

/// Checks that the VM traced every edge, and that no edge of at least one percent is missing. None if the test is
/// skipped; the reason is printed.
fn edges(method: &str, rounds: u32) -> Result<Option<Value>> {
    if skip_without_root("callgraph") {
        return Ok(None);
    }
    compare(method, rounds).map(Some)
}

#[test]
fn the_edges_of_a_recursion_are_those_that_the_vm_traced() -> Result<()> {
    let Some(recursion) = edges("recursion", 10_000)? else {
        return Ok(());
    };
    ensure!(
        recursion["recursive frames"].as_u64() >= Some(60),
        "{recursion}"
    );
    Ok(())
}

/// The call graph is eight levels deep.
#[test]
fn the_edges_of_native_and_managed_code_that_call_each_other_are_those_that_the_vm_traced()
-> Result<()> {
    let Some(jni) = edges("jni", 1000)? else {
        return Ok(());
    };
    ensure!(jni["of 1 % or more"].as_u64() >= Some(3), "{jni}");
    Ok(())
}

#[test]
fn the_edges_of_a_mutual_recursion_are_those_that_the_vm_traced() -> Result<()> {
    edges("pingPong", 20_000).map(drop)
}

#[test]
fn the_edges_of_exceptions_are_those_that_the_vm_traced() -> Result<()> {
    edges("exceptions", 3000).map(drop)
}

#[test]
fn the_edges_of_interface_calls_are_those_that_the_vm_traced() -> Result<()> {
    edges("interfaces", 2000).map(drop)
}

#[test]
fn the_edges_of_virtual_calls_are_those_that_the_vm_traced() -> Result<()> {
    edges("virtual", 4000).map(drop)
}
