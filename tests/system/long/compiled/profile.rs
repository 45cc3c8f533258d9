//! Is the profile of compiled code that of the interpreted program: its call graph, its shares, its hot methods?

use super::Stack;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::iter;
use std::path::{Path, PathBuf};
use varid_tests::{App, Code, DexFormat, Recording, judge, sample, skip_without_root, testbed};

/// As many tell what a method does in each round from what it does once.
const TRACED_ROUNDS: u32 = 5;
/// More than are sampled.
const ROUNDS: u32 = 10_000_000;
/// Code of each method by itself: nothing is inlined, and equal code and bytecode are not there only once.
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

/// A profile of a method of a workload, compiled with these options.
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

/// ART's own trace of a method of `truth`, for which it leaves all compiled code.
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

/// Profiles of known work until there are enough samples, judged together.
fn shares(code: Code, compiler: &[&str]) -> Result<Value> {
    // A percentage point is three standard deviations of a share of so many.
    const SAMPLES: u64 = 24_000;
    let (mut runs, mut samples) = (Vec::new(), 0);
    while samples < SAMPLES && runs.len() < 10 {
        // A prime rate.
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
    // With the methods that are inlined into others, and each by itself: ahead of time all of them are inlined.
    for (code, options) in iter::once((Code::Jit, &[][..])).chain(ALONE) {
        let once = || shares(code, options).with_context(|| format!("{code:?}"));
        // What a neighbour does to a shared machine passes; what varid does wrong comes again.
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
