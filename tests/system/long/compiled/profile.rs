//! Tests that the profile of compiled code matches that of the interpreted program: its call graph, its shares, its hot
//! methods.

use super::Stack;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::iter;
use std::path::{Path, PathBuf};
use varid_tests::{App, Code, DexFormat, Recording, judge, sample, skip_without_root, testbed};

/// Enough rounds to distinguish the work of each round from one-time work.
const TRACED_ROUNDS: u32 = 5;
/// More rounds than are sampled.
const ROUNDS: u32 = 10_000_000;
/// Code with nothing inlined, and without sharing of equal code and bytecode.
const ALONE: [(Code, &[&str]); 3] = [
    (Code::Jit, &["--inline-max-code-units=0"]),
    (
        Code::Image,
        &[
            "--inline-max-code-units=0",
            "--deduplicate-code=false",
            "--compact-dex-level=none",
        ],
    ),
    (
        Code::Odex(DexFormat::Plain),
        &["--inline-max-code-units=0", "--deduplicate-code=false"],
    ),
];
const CODES: [Code; 3] = [Code::Jit, Code::Image, Code::Odex(DexFormat::Compact)];

/// Records a profile of a workload's method, compiled with these options.
fn profile(
    workload: (&'static str, &str),
    code: Code,
    compiler: &[&str],
    options: &[&str],
) -> Result<Recording> {
    let mut app = App::new(workload.0, workload.1, ROUNDS)?.compiled(code, compiler)?;
    if code == Code::Jit {
        for option in compiler {
            for of_vm in ["-Xcompiler-option", option] {
                app = app.option("--vm-option").option(of_vm);
            }
        }
    }
    sample(&mut app.command(), &app.mapped_files(), options)
}

/// Makes ART's own trace of a method of `truth`. ART then executes no compiled code.
fn trace(method: &str, folder: &Path) -> Result<PathBuf> {
    let file = folder.join(method);
    App::new("truth", method, TRACED_ROUNDS)?.trace_to(&file)?;
    Ok(file)
}

#[test]
fn the_edges_of_compiled_code_are_those_that_the_vm_traces_of_the_interpreted_program() -> Result<()>
{
    if skip_without_root("call graph of compiled code") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    for method in [
        "recursion",
        "pingPong",
        "interfaces",
        "exceptions",
        "virtual",
        "jni",
    ] {
        let trace = trace(method, folder.path())?;
        for code in CODES {
            let options = [
                "-F",
                "4999",
                "--stack",
                Stack::Full.option(),
                "--duration",
                "3s",
            ];
            let recording = profile(("truth", method), code, &[], &options)?;
            let arguments = [
                trace.clone(),
                TRACED_ROUNDS.to_string().into(),
                format!("org.example.truth.Main.{method}").into(),
                recording.session(),
                "--compiled".into(),
            ];
            let found = judge("callgraph.py", arguments)
                .with_context(|| format!("{method} in {code:?}"))?;
            println!("{method} in {code:?}: {found}");
            ensure!(found["samples"].as_u64() > Some(500), "{method}: {found}");
        }
    }
    Ok(())
}

/// Profiles known work until there are enough samples, and judges them together.
fn shares(code: Code, compiler: &[&str]) -> Result<Value> {
    // With this number of samples, a percentage point is three standard deviations of a share.
    const SAMPLES: u64 = 24_000;
    let (mut runs, mut samples) = (Vec::new(), 0);
    while samples < SAMPLES && runs.len() < 10 {
        // A prime number.
        let options = ["-F", "3989", "--duration", "7s"];
        let run = profile(("truth", "shares"), code, compiler, &options)?;
        samples += run.counts()?["attributed"].as_u64().unwrap_or(0);
        runs.push(run);
    }
    let truth = testbed()?.workloads.join("truth.json");
    let inlined = compiler.is_empty().then(|| "--inlined".into());
    let sessions = runs.iter().map(Recording::session);
    let found = judge(
        "shares.py",
        iter::once(truth).chain(inlined).chain(sessions),
    )?;
    ensure!(found["samples"].as_u64() >= Some(20_000), "{found}");
    Ok(found)
}

#[test]
fn shares_of_known_work_are_right_in_compiled_code() -> Result<()> {
    if skip_without_root("shares of compiled code") {
        return Ok(());
    }
    // Once with methods inlined into others, and once without. Ahead of time, all of them are inlined.
    for (code, options) in iter::once((Code::Jit, &[][..])).chain(ALONE) {
        let once = || shares(code, options).with_context(|| format!("{code:?}"));
        // Interference on a shared machine is transient. Errors of varid occur again.
        let found = once().or_else(|_| once()).or_else(|_| once())?;
        println!("shares in {code:?} {options:?}: {found}");
    }
    Ok(())
}

#[test]
fn the_hot_methods_of_scimark_are_in_the_profile_of_its_compiled_code() -> Result<()> {
    if skip_without_root("hot methods of compiled code") {
        return Ok(());
    }
    let options = [
        "-F",
        "3989",
        "--stack",
        Stack::Full.option(),
        "--duration",
        "3s",
    ];
    let interpreted = profile(("math", "run"), Code::Interpreted, &[], &options)?;
    for code in CODES {
        let compiled = profile(("math", "run"), code, &[], &options)?;
        let found = judge(
            "hot_methods.py",
            [interpreted.session(), compiled.session()],
        )
        .with_context(|| format!("{code:?}"))?;
        println!("SciMark in {code:?}: {found}");
        ensure!(found["found"].as_u64() >= Some(5), "{found}");
    }
    Ok(())
}
