//! Tests that every sample is attributed to the correct method and bytecode.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use varid_tests::{
    App, Libart, MOST_RUNS, Recording, Release, SampleCounts, Says, Scale, attach, attach_to,
    beside_raw, interpreted_workloads, judge, judge_art, judge_runs_in_art, printed, record, scale,
    skip_without_root, testbed,
};

/// Returns rates in Hz and numbers of judged samples. The walker's rules are covered by its own tests. The gate only
/// shows that they match a real VM.
fn amounts() -> &'static [(u32, u64)] {
    match scale() {
        Scale::Gate => &[(10_000, 5_000)],
        Scale::Long => &[(1000, 10_000), (10_000, 100_000)],
    }
}

/// Returns the number of judged samples for a variant of an interpreter.
fn of_variants() -> u64 {
    match scale() {
        Scale::Gate => 5_000,
        Scale::Long => 10_000,
    }
}

/// Judges apps in an interpreter in assembly, whose registers hold the bytecode pc.
fn in_assembly(interpreter: &str, apps: &[App]) -> Result<()> {
    for (rate, enough) in amounts() {
        let counts = judge_runs_in_art(apps, *rate, *enough)?;
        println!("{interpreter} at {rate} Hz: {counts:?}");
        // About three in ten. The share varies with the speed of the individual workloads.
        counts.check("bytecode known", 15, 5)?;
    }
    Ok(())
}

/// Returns workloads for the gate if the long tests run the others in the same interpreter. The first has the most self
/// samples in methods, the second each kind of call.
fn fewer_workloads() -> Result<Vec<App>> {
    let mut apps = interpreted_workloads()?;
    if scale() == Scale::Gate {
        apps.truncate(2);
    }
    Ok(apps)
}

/// Selects a release of ART and options of artvm.
fn with(apps: Vec<App>, release: Release, options: &[&str]) -> Vec<App> {
    let one = |app: App| app.in_release(release).options(options);
    apps.into_iter().map(one).collect()
}

#[test]
fn every_sample_in_art_is_what_the_registers_say() -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    in_assembly("ART", &interpreted_workloads()?)
}

/// nterp, which has native frames with their method at the stack pointer.
#[test]
fn every_sample_in_nterp_is_what_the_registers_say() -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    let apps = with(interpreted_workloads()?, Release::Art14, &[]);
    in_assembly("ART 14's nterp", &apps)
}

/// A library's own information must be as good as the table of builds.
#[cfg(target_arch = "x86_64")] // The library is Debian's for x86-64.
#[test]
fn every_sample_of_an_unseen_build_is_what_the_registers_say() -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    let fourteen = testbed()?.release.join("art14/libart.so.0");
    let known = Path::new(Libart::KNOWN);
    for (release, library) in [(Release::Art11, known), (Release::Art14, &*fourteen)] {
        let libart = Libart::unknown_of(library, Says::All)?;
        let path = libart.path().display().to_string();
        let options = ["--any-build", "--libart", path.as_str()];
        let apps = with(fewer_workloads()?, release, &options);
        // It runs long enough to be found on a busy machine.
        let long = with(vec![App::new("truth", "shares", 600)?], release, &options);
        let said = record(&long[0], &["-F", "997", "-v"])?.stderr();
        ensure!(said.contains(Libart::CHECKED), "{said}");
        let counts = judge_runs_in_art(&apps, 10_000, of_variants())?;
        println!("{release:?}, not in the table: {counts:?}");
        counts.check("bytecode known", 15, 5)?;
    }
    Ok(())
}

/// The switch interpreter has no register for its pc. Each frame's method is compared with the instruction of its
/// caller.
#[test]
fn every_sample_in_art_14s_switch_interpreter_has_its_methods() -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    let apps = with(fewer_workloads()?, Release::Art14, &["--int"]);
    let counts = judge_runs_in_art(&apps, 10_000, of_variants())?;
    println!("ART 14's switch interpreter: {counts:?}");
    counts.check("switch", 15, 5)?;
    // With the surrounding native frames, as when other methods are compiled.
    let mut options = beside_raw("997").to_vec();
    options.extend(["--stack", "full"]);
    let counts = judge_art(&apps[0], &record(&apps[0], &options)?)?;
    let counts = counts.context("it was over too soon")?;
    println!("with whole stacks: {counts}");
    ensure!(
        counts["wrong"] == 0 && counts["switch"].as_u64() > Some(100),
        "{counts}"
    );
    Ok(())
}

/// A page fault is where an instruction is the first to touch memory: in frames that are being made, at the ends of stacks. A timer seldom meets
/// these.
#[test]
fn every_page_fault_in_art_has_its_methods() -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    let mut options = beside_raw("1").to_vec();
    options.splice(..2, ["-e", "page-faults", "-c", "1"]);
    for (release, of_release) in [
        (Release::Art11, &[][..]),
        (Release::Art14, &[]),
        (Release::Art14, &["--int"]),
    ] {
        for app in with(interpreted_workloads()?, release, of_release) {
            let counts = judge_art(&app, &record(&app, &options)?)?;
            let counts = counts.context("it was over too soon")?;
            println!("page faults of {} in {release:?}: {counts}", app.name);
            ensure!(counts["samples"].as_u64() > Some(1000), "{counts}");
        }
    }
    Ok(())
}

/// Once in about 5,000 samples, an invoke of this app has unlinked the VM's frames, and not linked them to its own yet.
#[test]
fn a_sample_in_the_middle_of_an_invoke_has_its_methods() -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    let (rounds, enough) = match scale() {
        Scale::Gate => (60, 10_000),
        Scale::Long => (1000, 100_000),
    };
    let app = App::new("math", "run", rounds)?;
    let recording = record(&app, &beside_raw("10000"))?;
    let counts = judge_art(&app, &recording)?.context("it was over too soon")?;
    println!("in the middle of invokes: {counts}");
    ensure!(counts["wrong"] == 0, "{counts}");
    ensure!(counts["samples"].as_u64() > Some(enough), "{counts}");
    Ok(())
}

/// What is known of a sample's methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    /// The time in nanoseconds of CLOCK_MONOTONIC.
    time: u64,
    /// Whether at least one method has a name.
    named: bool,
    /// Whether the sample precedes the detection of the VM.
    early: bool,
    /// Whether nothing could be read because the process had ended.
    gone: bool,
}

/// Returns what is known of each sample's methods, in time order.
fn known(session: &Path) -> Result<Vec<Known>> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--no-inline", "--ns", "-F", "time,ip,sym", "-i"]);
    let script = printed(perf.arg(session.join("perf.data")))?;
    let mut samples: Vec<Known> = Vec::new();
    for line in script.lines() {
        let symbol = line.split_whitespace().nth(1);
        if let Some(time) = line.trim().strip_suffix(':') {
            samples.push(Known {
                time: time.replace('.', "").parse()?,
                named: false,
                early: false,
                gone: false,
            });
        } else if let (Some(symbol), Some(sample)) = (symbol, samples.last_mut()) {
            sample.named |= symbol.starts_with("org.example.");
            sample.early |= symbol == "[vm-not-ready]";
            sample.gone |= symbol == "[vm-gone]";
        }
    }
    Ok(samples)
}

/// Returns the time from which the kernel's programs know the app's VM, according to `record -v`. None if they never
/// did.
fn walked_since(recording: &Recording) -> Result<Option<u64>> {
    let said = recording.stderr();
    let mut all = said
        .lines()
        .filter(|line| line.contains("frames are walked"));
    let Some((_, since)) = all.next().and_then(|line| line.split_once("since=")) else {
        return Ok(None);
    };
    let digits = since.split_whitespace().next();
    Ok(digits.map(str::parse).transpose()?)
}

#[test]
fn a_command_of_a_moment_has_its_methods_from_when_its_vm_is_known_on() -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    let (mut methods, mut judged) = (0, 0);
    // They take less than 0.2 s each. Afterwards nothing can be read from them.
    let apps = [
        ("truth", "shares", 60),
        ("truth", "run", 10),
        ("math", "run", 1),
    ];
    let mut options = beside_raw("4999").to_vec();
    options.push("-v");
    for (run, (name, method, rounds)) in apps.into_iter().cycle().take(30).enumerate() {
        if run >= apps.len() && methods > 100 && judged > 100 {
            break;
        }
        // On a busy machine, an app may end before its VM is known. Later ones run longer.
        let longer = 1 << (run / apps.len()).min(4);
        let app = &App::new(name, method, rounds * longer)?;
        let recording = record(app, &options)?;
        let Some(counted) = judge_art(app, &recording)? else {
            continue;
        };
        let samples = known(&recording.session())?;
        methods += samples.iter().filter(|sample| sample.named).count();
        let Some(since) = walked_since(&recording)? else {
            continue;
        };
        let walked = samples.iter().filter(|sample| sample.time > since);
        let walked: Vec<_> = walked.collect();
        let (early, late) = (samples.len() - walked.len(), walked.len());
        let gone = samples.iter().filter(|sample| sample.gone).count();
        println!(
            "{early} and {late} samples of {}, {gone} gone: {counted}",
            app.name
        );
        let missed = walked.iter().find(|sample| sample.early);
        ensure!(missed.is_none(), "{}: {missed:?} since {since}", app.name);
        judged += late;
    }
    ensure!(methods > 100, "{methods} samples of methods");
    ensure!(judged > 100, "{judged} samples since the VM was known");
    Ok(())
}

#[test]
fn a_vm_that_runs_already_has_its_methods_from_its_first_sample_on() -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    // A register leads to the frames of mterp. Those of the switch interpreter are only found by the walk.
    let apps = [
        App::new("truth", "shares", 400)?,
        App::new("truth", "shares", 100)?
            .in_release(Release::Art14)
            .option("--int"),
    ];
    for app in apps {
        let recording = attach(&app, &["-F", "997", "-v"])?;
        // The program that walks all frames was loaded before varid named the sampled process.
        walked_since(&recording)?.context("its frames are never walked")?;
        let samples = known(&recording.session())?;
        let early = samples.iter().find(|sample| sample.early);
        ensure!(early.is_none(), "{early:?}");
        let named = samples.iter().filter(|sample| sample.named).count();
        println!("{named} of {} samples have methods", samples.len());
        ensure!(named > 100, "{named} of {} samples", samples.len());
    }
    Ok(())
}

/// In the shadow interpreter every method is a native function, so its symbol is the ground truth.
fn shadow(rate: u32, enough: u64, more: &[&str]) -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    let program = testbed()?.shadowvm.join("shadowvm");
    let dex = testbed()?.shadowvm.join("shadow.dex");
    let mut counts = SampleCounts::default();
    for _ in 0..MOST_RUNS {
        if counts.judged() >= enough {
            break;
        }
        let mut vm = Command::new(&program);
        vm.arg("--dex").arg(&dex).args([
            "--name",
            "org.example.shadow",
            "--rounds",
            "2",
            "--threads",
            "1",
        ]);
        vm.args(more);
        let files = ["varid-tunnel".to_owned(), dex.display().to_string()];
        let rate = rate.to_string();
        let (recording, _) = attach_to(vm.stdin(Stdio::null()), &files, &beside_raw(&rate))?;
        let counted = judge(
            "shadow.py",
            [recording.session(), recording.maps(), program.clone()],
        )?;
        counts.add(&counted)?;
    }
    println!("shadow interpreter at {rate} Hz: {counts:?}");
    ensure!(counts.judged() >= enough, "too few samples: {counts:?}");
    // The first and last instructions of a method, where its shadow frame is absent, have more samples than in ART:
    // five in a thousand. For 5,000 samples, it is 50 by chance in less than one of ten thousand runs, and never 100.
    counts.check("method known", 90, 20)
}

#[test]
fn every_sample_in_the_shadow_interpreter_is_what_the_symbols_say() -> Result<()> {
    amounts()
        .iter()
        .try_for_each(|(rate, enough)| shadow(*rate, *enough, &[]))
}

#[test]
fn every_remapped_address_in_a_shadow_stack_is_the_method_that_the_symbols_say() -> Result<()> {
    shadow(10_000, 5000, &["--remap"])
}
