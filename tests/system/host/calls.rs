//! Tests that the tactic method-invoke counts each call, return and unwind exactly once.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use varid_tests::{App, judge, manifest, printed, skip_without_root, testbed};

/// The notes of a session whose VM ended before varid, which was waiting for a processor, examined it.
const TOO_LATE: [&str; 4] = [
    "ended before",
    "or the session, ended",
    "its VM was not up",
    "could not be named",
];

/// Records a command whose VM counts, from its start to its end. Returns the output of the command and of varid. A run
/// that ended before varid examined it is repeated.
fn counted(session: &Path, options: &[&str], command: &Command) -> Result<(String, String)> {
    for _ in 0..2 {
        let recorded = record(session, options, command)?;
        let notes = manifest(session)?["notes"].to_string();
        if !TOO_LATE.iter().any(|too_late| notes.contains(too_late)) {
            return Ok(recorded);
        }
        println!("again: {notes}");
        std::fs::remove_dir_all(session)?;
    }
    record(session, options, command)
}

/// Records a command from its start to its end.
fn record(session: &Path, options: &[&str], command: &Command) -> Result<(String, String)> {
    let mut varid = testbed()?.varid();
    varid
        .args(["record", "--tactic", "method-invoke", "-o"])
        .arg(session)
        .args(options)
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args());
    let output = varid.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{varid:?}: {said}");
    Ok((String::from_utf8(output.stdout)?, said))
}

/// Writes the session's calls to a file for the oracle.
fn calls(session: &Path, folder: &Path) -> Result<std::path::PathBuf> {
    let mut report = testbed()?.varid();
    report.args(["report", "--by", "calls", "--format", "csv", "-i"]);
    let path = folder.join("calls.csv");
    std::fs::write(&path, printed(report.arg(session))?)?;
    Ok(path)
}

/// Compares an app's counts in ART's own method trace and in varid, for all its methods or only those with the prefix
/// `only`.
fn compare(name: &'static str, method: &str, rounds: u32, only: Option<&str>) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("trace");
    let session = folder.path().join("session");
    let app = [
        "-Xmethod-trace",
        &format!("-Xmethod-trace-file:{}", trace.display()),
        "-Xmethod-trace-file-size:400000000",
    ]
    .iter()
    .try_fold(App::new(name, method, rounds)?, |app, option| {
        Ok::<_, anyhow::Error>(app.option("--vm-option").option(*option))
    })?;
    let arguments = app.arguments();
    let mut command = Command::new(&arguments[0]);
    // varid's agent in the VM counts.
    command.args(arguments[1..].iter().filter(|word| *word != "--no-dim"));
    let pattern = only.map(|prefix| format!("{prefix}*"));
    let options = pattern
        .as_ref()
        .map(|pattern| ["--method", pattern.as_str()]);
    let options = options.as_ref().map_or(&[][..], |options| options);
    let said = counted(&session, options, &command)?.1;
    let calls = calls(&session, folder.path())?;
    let mut arguments = vec![calls, trace, only.unwrap_or("org.example.").into()];
    arguments.extend(only.map(|_| "only".into()));
    let found = judge("calls.py", arguments).with_context(|| format!("{name} {method}: {said}"))?;
    println!("{name} {method}: {found}");
    Ok(found)
}

fn shadowvm(arguments: &[&str]) -> Result<Command> {
    let testbed = testbed()?;
    let mut command = Command::new(testbed.shadowvm.join("shadowvm"));
    command
        .arg("--dex")
        .arg(testbed.shadowvm.join("shadow.dex"))
        .args(arguments);
    Ok(command)
}

#[test]
fn art_s_counts_are_those_of_its_own_trace() -> Result<()> {
    if skip_without_root("calls") {
        return Ok(());
    }
    for (method, rounds) in [
        ("shares", 3),
        ("recursion", 3),
        ("pingPong", 3),
        ("interfaces", 2),
        ("threads", 2),
        ("tiny", 1),
        ("virtual", 2),
        ("locked", 2),
        ("jni", 3),
    ] {
        let found = compare("truth", method, rounds, None)?;
        ensure!(found["calls"] == found["returns"], "{found}");
    }
    let thrown = compare("truth", "exceptions", 2, None)?;
    ensure!(thrown["unwinds"].as_u64() >= Some(100), "{thrown}");
    for (name, rounds) in [
        ("math", 1),
        ("vm", 1),
        ("cradle", 3),
        ("scene", 1),
        ("odd", 1),
        ("alike", 2),
    ] {
        compare(name, "run", rounds, None)?;
    }
    Ok(())
}

#[test]
fn a_shadow_stacks_counts_are_those_of_its_vm() -> Result<()> {
    if skip_without_root("calls") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let command = shadowvm(&["--rounds", "3", "--threads", "2", "--counts"])?;
    let (counts, _) = counted(&session, &["--log-calls"], &command)?;
    let truth = folder.path().join("counts");
    std::fs::write(&truth, counts)?;
    let calls = calls(&session, folder.path())?;
    let found = judge("calls.py", [calls, truth])?;
    println!("shadowvm: {found}");
    ensure!(found["unwinds"].as_u64() >= Some(100), "{found}");
    ensure!(found["methods"] == 64, "{found}");

    // The log has a line for each event, with the same number of each kind.
    let mut logged = HashMap::new();
    for entry in std::fs::read_dir(&session)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("calls.log.") {
            for line in std::fs::read_to_string(&path)?.lines() {
                ensure!(line.split(' ').count() == 4, "{line}");
                let kind = line.chars().next().context("an empty line")?;
                *logged.entry(kind).or_insert(0u64) += 1;
            }
        }
    }
    for (kind, event) in [('>', "calls"), ('<', "returns"), ('!', "unwinds")] {
        ensure!(
            logged.get(&kind).copied() == found[event].as_u64(),
            "{logged:?} {found}"
        );
    }
    Ok(())
}

/// A process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a shadowvm, which runs until it is killed.
    fn shadowvm() -> Result<Self> {
        let mut command = shadowvm(&["--rounds", "1000000", "--quiet"])?;
        Ok(Self(command.stdin(Stdio::null()).spawn()?))
    }

    /// Starts a session of it.
    fn session(&self, output: &Path) -> Result<Self> {
        let mut varid = testbed()?.varid();
        varid
            .args(["record", "--tactic", "method-invoke", "-p"])
            .arg(self.0.id().to_string())
            .arg("-o")
            .arg(output)
            .stderr(Stdio::piped());
        Ok(Self(varid.spawn()?))
    }

    /// Returns its output up to a line with `words`.
    fn says(&mut self, words: &str) -> Result<String> {
        let stderr = self.0.stderr.take().context("it cannot be heard")?;
        let mut said = String::new();
        for line in BufReader::new(stderr).lines() {
            said.push_str(&line?);
            said.push('\n');
            if said.contains(words) {
                return Ok(said);
            }
        }
        bail!("'{words}' was not said: {said}")
    }

    /// Waits until the VM's tunnel shows this tactic.
    fn awaits_tactic(&self, tactic: u32) -> Result<()> {
        let pid = self.0.id();
        let start = loop {
            // An error means that the process has ended. Before it starts up, it has no tunnel.
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
            ensure!(!maps.is_empty(), "process {pid} has ended");
            let tunnel = maps
                .lines()
                .find(|line| line.contains("memfd:varid-tunnel"));
            if let Some(line) = tunnel {
                let start = line.split('-').next().context("no address")?;
                break u64::from_str_radix(start, 16)?;
            }
            std::thread::yield_now();
        };
        let memory = std::fs::File::open(format!("/proc/{pid}/mem"))?;
        loop {
            let mut found = [0; 4];
            // Follows magic, version, sizes, time, VM, pid and generation.
            std::os::unix::fs::FileExt::read_exact_at(&memory, &mut found, start + 44)?;
            if u32::from_le_bytes(found) == tactic {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_vm_stops_counting_with_the_session_that_dies_and_takes_no_second() -> Result<()> {
    if skip_without_root("calls") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let vm = Running::shadowvm()?;
    let first = vm.session(&folder.path().join("first"))?;
    vm.awaits_tactic(1)?;
    let mut second = vm.session(&folder.path().join("second"))?;
    second.says("another session controls process")?;
    vm.awaits_tactic(1)?;
    drop(first);
    vm.awaits_tactic(0)?;
    drop(second);
    let third = vm.session(&folder.path().join("third"))?;
    vm.awaits_tactic(1)?;
    drop(third);
    vm.awaits_tactic(0)
}

#[test]
fn only_methods_that_the_patterns_name_are_counted() -> Result<()> {
    if skip_without_root("calls") {
        return Ok(());
    }
    let vm = shadowvm(&["--rounds", "5", "--counts"])?;
    let folder = tempfile::tempdir()?;
    // The same with a script of the VM's name that executes it.
    let script = folder.path().join("shadowvm");
    std::fs::write(&script, "#!/bin/bash\nexec -a shadowvm \"$@\"\n")?;
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&script, executable)?;
    let mut through = Command::new(&script);
    through.arg(vm.get_program()).args(vm.get_args());
    for (name, command) in [("itself", &vm), ("through a script", &through)] {
        let session = folder.path().join(name);
        let pattern = "org.example.shadow.Methods.m1*";
        let (counts, _) = counted(&session, &["--method", pattern], command)?;
        let truth: String = counts
            .lines()
            .filter(|line| line.contains(" m1"))
            .map(|line| format!("{line}\n"))
            .collect();
        let expected = folder.path().join("counts");
        std::fs::write(&expected, truth)?;
        let calls = calls(&session, folder.path())?;
        let found = judge("calls.py", [calls, expected])?;
        println!("shadowvm, {name}, {pattern}: {found}");
        ensure!(found["methods"] == 10, "{name}: {found}");
    }
    Ok(())
}

#[test]
fn a_launched_vm_counts_by_the_patterns_from_its_first_call_on() -> Result<()> {
    if skip_without_root("calls") {
        return Ok(());
    }
    // These end before they have read varid's order.
    for (method, rounds, prefix) in [
        ("shares", 1, "org.example.truth.Shares.both"),
        ("pingPong", 1, "org.example.truth.Recursion.p"),
        ("tiny", 1, "org.example.truth.Tiny.twice"),
        ("exceptions", 1, "org.example.truth.Unwinding."),
        ("threads", 1, "org.example.truth.Worker"),
    ] {
        compare("truth", method, rounds, Some(prefix))?;
    }
    Ok(())
}

#[test]
fn a_vm_that_cannot_count_is_named() -> Result<()> {
    if skip_without_root("calls") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let mut shown = String::new();
    // A short run may end before varid has found its VM.
    for rounds in [50, 500, 5000] {
        let session = folder.path().join(rounds.to_string());
        // Without varid's agent.
        let app = App::new("truth", "shares", rounds)?;
        record(&session, &[], &app.command())?;
        let mut report = testbed()?.varid();
        report.args(["report", "--by", "calls", "-i"]).arg(&session);
        shown = printed(&mut report)?;
        if shown.contains("has no part of varid's in its VM, or") {
            return Ok(());
        }
    }
    bail!("{shown}")
}

#[test]
fn without_the_tactic_nothing_is_counted() -> Result<()> {
    if skip_without_root("calls") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let command = shadowvm(&["--rounds", "1"])?;
    let mut varid = testbed()?.varid();
    varid.args(["record", "-o"]).arg(&session).arg("--");
    varid.arg(command.get_program()).args(command.get_args());
    ensure!(varid.output()?.status.success());
    ensure!(!session.join("contexts.data").exists());
    let mut report = testbed()?.varid();
    report
        .args(["report", "--measure", "calls", "-i"])
        .arg(&session);
    let refused = report.output()?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(
        !refused.status.success() && said.contains("this session has no measure 'calls'"),
        "{said}"
    );
    Ok(())
}
