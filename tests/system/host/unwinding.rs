//! Tests native unwinding, and the methods that only unwinding finds.
#![cfg(target_arch = "x86_64")] // The ground truth is for Debian's x86-64 build.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use varid_tests::{
    App, Libart, Says, Scale, compile, judge, record, scale, skip_without_root, testbed,
};

/// Returns a workload that runs with an unknown libart.
fn app(libart: &Libart, name: &'static str, method: &str, rounds: u32) -> Result<App> {
    Ok(App::new(name, method, rounds)?
        .option("--any-build")
        .option("--libart")
        .option(libart.path().display().to_string()))
}

/// Adds the counts of a run.
fn add(sum: &mut BTreeMap<String, u64>, counted: &Value) -> Result<()> {
    for (name, count) in counted.as_object().context("no JSON object")? {
        *sum.entry(name.clone()).or_default() += count.as_u64().context("no count")?;
    }
    Ok(())
}

/// Judges each sample of a build that varid does not know, by the known build's data.
fn unknown_build(rate: &str, rounds: [u32; 3]) -> Result<()> {
    if skip_without_root("unwinding") {
        return Ok(());
    }
    let libart = Libart::unknown(Says::Bytecode)?;
    let mut sum = BTreeMap::new();
    for (name, rounds) in ["math", "truth", "cradle"].into_iter().zip(rounds) {
        let app = app(&libart, name, "run", rounds)?;
        let recording = record(&app, &["-F", rate, "--shim", "bpf", "--keep-raw"])?;
        let said = recording.stderr();
        ensure!(
            said.contains(&libart.build_id)
                && said.contains("found through its unwind information"),
            "{said}"
        );
        let counted = judge(
            "unknown_build.py",
            [
                recording.session(),
                recording.maps(),
                app.traced()?,
                app.dex(),
                testbed()?.boot_dex(),
            ],
        )
        .with_context(|| format!("{name} at {rate} Hz"))?;
        println!("{name} at {rate} Hz: {counted}");
        add(&mut sum, &counted)?;
    }
    println!("an unknown build at {rate} Hz: {sum:?}");
    let of = |name: &str| sum.get(name).copied().unwrap_or(0);
    ensure!(of("wrong") == 0);
    ensure!(of("samples") > 3000 && of("bytecode known") * 5 > of("samples"));
    // At a method's entry no register holds it: at most 0.8 % were observed.
    ensure!(of("unresolved") * 50 < of("samples"), "{sum:?}");
    ensure!(of("ends: entry") * 10 > of("samples") * 8, "{sum:?}");
    Ok(())
}

#[test]
fn every_sample_of_an_unknown_build_is_what_the_registers_say() -> Result<()> {
    unknown_build("10000", [20, 150, 500])?;
    match scale() {
        Scale::Gate => Ok(()),
        Scale::Long => unknown_build("997", [100, 900, 3000]),
    }
}

#[test]
fn an_unknown_build_has_its_methods_without_privileges_of_the_kernel_too() -> Result<()> {
    if skip_without_root("unwinding") {
        return Ok(());
    }
    let libart = Libart::unknown(Says::Bytecode)?;
    let app = app(&libart, "math", "run", 40)?;
    let counts = record(&app, &["-F", "997", "--shim", "perf"])?.counts()?;
    println!("perf's copies of an unknown build: {counts}");
    let of = |count: &Value| count.as_u64().unwrap_or(0);
    // The part before the detection of the VM depends on the load of the machine.
    let known = of(&counts["samples"]) - of(&counts["unattributed"]["vm-not-ready"]);
    ensure!(known > 100 && of(&counts["attributed"]) * 100 > known * 95);
    Ok(())
}

#[test]
fn stacks_are_unwound_as_perf_unwinds_them_or_better() -> Result<()> {
    if skip_without_root("unwinding") {
        return Ok(());
    }
    // The frames of this build are unknown, so the recording has the native stack through the interpreter.
    let libart = Libart::unknown(Says::Nothing)?;
    let (mut sum, mut lost) = (BTreeMap::new(), 0);
    for (name, rounds) in [("math", 20), ("truth", 200), ("cradle", 500)] {
        let app = app(&libart, name, "run", rounds)?;
        let options = [
            "-F",
            "997",
            "--shim",
            "bpf",
            "--stack",
            "full",
            "--keep-raw",
        ];
        let recording = record(&app, &options)?;
        let counted = judge("unwinding.py", [recording.session(), recording.maps()])?;
        println!("{name}: {counted}");
        add(&mut sum, &counted)?;
        lost += recording.counts()?["lost"].as_u64().context("no count")?;
    }
    println!("unwinding: {sum:?}, {lost} lost");
    let of = |name: &str| sum.get(name).copied().unwrap_or(0);
    ensure!(of("samples") > 1000 && of("equal and right") * 100 > of("samples") * 90);
    // There may have been space for only one of an overflow's two records.
    ensure!(lost * 4 < of("samples"), "{lost} lost: {sum:?}");
    ensure!(of("unpaired") < lost + of("samples") / 50, "{sum:?}");
    // Once in 5,000 samples was observed. By chance, a few thousand samples do not have ten more than one in 500.
    ensure!(
        of("perf right: the copy does not hold the frame") < of("samples") / 500 + 10,
        "{sum:?}"
    );
    Ok(())
}

/// The depth of the chain in alternate.c.
const DEPTH: usize = 20;

/// Returns the user frames of a recording's samples in a function of a program, from the function outwards. The program
/// runs for a second.
fn frames_from(
    (name, function): (&str, &str),
    folder: &Path,
    options: &[&str],
) -> Result<Vec<Vec<String>>> {
    let session = folder.join(options.concat());
    let recorded = testbed()?
        .varid()
        .args(["record", "-q", "-e", "cpu-clock", "-F", "4000"])
        .args(options)
        .arg("-o")
        .arg(&session)
        .arg("--")
        .arg(folder.join(name))
        .arg("1000")
        .status()?;
    ensure!(recorded.success(), "{options:?}: {recorded}");
    let exported = testbed()?
        .varid()
        .args(["export", "-q", "-f", "jsonl"])
        .arg(&session)
        .output()?;
    ensure!(exported.status.success(), "{exported:?}");
    let mut all = Vec::new();
    for line in String::from_utf8(exported.stdout)?.lines() {
        let sample: Value = serde_json::from_str(line)?;
        let frames = sample["frames"].as_array().into_iter().flatten();
        let names = frames.filter_map(|frame| frame["symbol"].as_str());
        let names: Vec<_> = names.skip_while(|name| *name != function).collect();
        if !names.is_empty() {
            all.push(names.into_iter().map(str::to_owned).collect());
        }
    }
    Ok(all)
}

#[test]
fn callers_lie_beyond_pages_of_the_stack_that_were_never_touched() -> Result<()> {
    if skip_without_root("untouched pages") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile("untouched", folder.path())?;
    let (main, thread) = (
        ["work", "large", "main"],
        ["work", "small", "twice", "thread"],
    );
    let options = ["--shim", "bpf", "--stack", "full"];
    let samples = frames_from(("untouched", "work"), folder.path(), &options)?;
    let begin = |names: &[&str]| {
        let begins = |found: &&Vec<String>| {
            found.len() > names.len() && found.iter().zip(names).all(|(one, other)| one == other)
        };
        samples.iter().filter(begins).count()
    };
    let found = (samples.len(), begin(&main), begin(&thread));
    println!("untouched pages: {found:?}");
    ensure!(
        found.0 == found.1 + found.2 && found.1.min(found.2) > 1000,
        "{found:?}"
    );
    Ok(())
}

/// perf's copies are limited. Where they end, `[truncated]` replaces the callers.
#[test]
fn callers_lie_beyond_the_end_of_what_is_copied_where_frame_pointers_lead_to_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    compile("beyond", folder.path())?;
    let program = ("beyond", "work");
    let within = ["work", "large"];
    let is_root = !skip_without_root("frame pointers beyond the copy");
    for stack in ["full", "vertical"].iter().filter(|_| is_root) {
        let options = ["--shim", "bpf", "--stack", stack];
        let samples = frames_from(program, folder.path(), &options)?;
        let called_by = |caller| {
            let begins = [&within[..], &[caller, "rounds", "main"]].concat();
            let from_caller = |names: &&Vec<String>| {
                let names = names.iter().map(String::as_str);
                names.take(begins.len()).eq(begins.iter().copied())
            };
            let found = samples.iter().filter(from_caller);
            let has_reason = |names: &&Vec<String>| names.iter().any(|name| name.starts_with('['));
            (found.clone().count(), found.filter(has_reason).count())
        };
        let (three, one) = (called_by("three"), called_by("one"));
        println!("{stack}: {} samples, {three:?}, {one:?}", samples.len());
        // In the first and last instructions of `work`, the frame pointer is that of its caller, which is left out.
        let (known, reasons) = (three.0 + one.0, three.1 + one.1);
        ensure!(known * 100 >= samples.len() * 99 && reasons == 0);
        // Three of four are expected. The bounds are five standard errors plus the difference between rounds.
        let share = three.0 as f64 / known as f64;
        let error = (0.75 * 0.25 / known as f64).sqrt();
        ensure!((share - 0.75).abs() < 5.0 * error + 0.01, "{share}");
    }
    let samples = frames_from(
        program,
        folder.path(),
        &["--shim", "perf", "--stack", "full"],
    )?;
    let cut = [&within[..], &["[truncated]"]].concat();
    let is_cut = samples.iter().filter(|names| **names == cut).count();
    ensure!(samples.len() > 200 && is_cut * 100 >= samples.len() * 99);
    Ok(())
}

#[test]
fn a_handlers_callers_are_those_that_its_signal_interrupted_wherever_its_stack_is() -> Result<()> {
    if skip_without_root("alternate stacks") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile("alternate", folder.path())?;
    let program = ("alternate", "handler");
    let interrupted = ["handler", "__restore_rt", "faulting"];
    let chain = [&interrupted[..], &["down"; DEPTH + 1], &["chain"]].concat();
    for stack in ["full", "vertical"] {
        let samples = frames_from(program, folder.path(), &["--shim", "bpf", "--stack", stack])?;
        let mut threads: BTreeMap<String, usize> = BTreeMap::new();
        for names in &samples {
            ensure!(
                names
                    .iter()
                    .zip(&chain)
                    .all(|(name, expected)| name == expected),
                "{stack}: {names:?}"
            );
            let entry = names.get(chain.len()).context("no thread")?;
            *threads.entry(entry.clone()).or_default() += 1;
            let reason = names.iter().find(|name| name.starts_with('['));
            ensure!(reason.is_none(), "{stack}: {names:?}");
        }
        println!("{stack}: {threads:?}");
        let both: Vec<_> = threads.keys().map(String::as_str).collect();
        ensure!(
            both == ["main", "thread"] && samples.len() > 200,
            "{threads:?}"
        );
    }
    // perf only copies the handler's stack.
    let samples = frames_from(
        program,
        folder.path(),
        &["--shim", "perf", "--stack", "full"],
    )?;
    let cut = [&interrupted[..], &["[truncated]"]].concat();
    ensure!(
        samples.len() > 200 && samples.iter().all(|names| *names == cut),
        "{samples:?}"
    );
    Ok(())
}
