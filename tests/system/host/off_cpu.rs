//! Tests that off-CPU time is sampled completely, with the stacks of the waiting threads. The ground truth is the
//! scheduler's data of each thread.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use varid_tests::{App, compile, judge, manifest, printed, record, skip_without_root, testbed};

/// `BPF_PROG_TYPE_RAW_TRACEPOINT`, the type of the program that runs at context switches.
const RAW_TRACEPOINT: &str = "prog_type:\t17";
/// The timeout, for a busy machine.
const HANGS: Duration = Duration::from_secs(60);

/// The program whose threads wait, and a folder for its sessions.
struct Waits {
    folder: tempfile::TempDir,
}

impl Waits {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        compile("waits", folder.path())?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("waits"));
        command.args(arguments);
        command
    }

    /// Records the program until it ends. Its output is stored beside the session, as `printed`.
    fn record(&self, options: &[&str], arguments: &[&str]) -> Result<PathBuf> {
        let session = self.path("session");
        let output = testbed()?
            .varid()
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(&session)
            .arg("--")
            .arg(self.path("waits"))
            .args(arguments)
            .output()?;
        succeeded(&output)?;
        std::fs::write(self.path("printed"), &output.stdout)?;
        Ok(session)
    }

    fn judge(&self, session: &Path, options: &[&str]) -> Result<Value> {
        let printed = self.path("printed");
        let paths = [session.as_os_str(), printed.as_os_str()];
        let options = options.iter().map(OsStr::new);
        judge("off_cpu.py", paths.into_iter().chain(options))
    }
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn succeeded(output: &Output) -> Result<()> {
    ensure!(
        output.status.success(),
        "{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Returns thread, event and period of each sample, by perf.
fn samples(session: &Path) -> Result<Vec<(u32, String, u64)>> {
    let text = printed(
        Command::new("perf")
            .args(["script", "-G", "-F", "tid,period,event", "-i"])
            .arg(session.join("perf.data")),
    )?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let sample = |line: &str| -> Option<_> {
        let mut words = line.split_whitespace();
        let (tid, period) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((tid, words.next()?.trim_end_matches(':').to_owned(), period))
    };
    // For an event that perf interprets as its own, a dump of raw bytes follows.
    Ok(lines.filter_map(sample).collect())
}

/// Interference on a shared machine is transient. Errors of varid occur again.
fn in_three_tries(what: &str, once: impl Fn() -> Result<Value>) -> Result<()> {
    let found = once().or_else(|_| once()).or_else(|_| once())?;
    println!("{what}: {found}");
    Ok(())
}

#[test]
fn waits_are_as_long_as_the_scheduler_says_and_in_the_function_that_waits() -> Result<()> {
    if skip_without_root("waits") {
        return Ok(());
    }
    let waits = Waits::new()?;
    in_three_tries("waits", || {
        let session = waits.record(&["--off-cpu", "--stack", "full"], &["3000"])?;
        waits.judge(&session, &[])
    })
}

#[test]
fn wall_time_is_the_time_that_threads_live() -> Result<()> {
    if skip_without_root("wall time") {
        return Ok(());
    }
    let waits = Waits::new()?;
    in_three_tries("wall time", || {
        let session = waits.record(&["--wall", "--stack", "full"], &["3000"])?;
        waits.judge(&session, &["--wall"])
    })
}

#[test]
fn managed_threads_wait_in_their_methods() -> Result<()> {
    if skip_without_root("managed waits") {
        return Ok(());
    }
    const ROUNDS: u32 = 25;
    let app = App::new("waits", "waits", ROUNDS)?;
    // Native code calls Thread.run, which nterp executes. Its frame is walked, or unwound from the stack copy.
    for stack in ["vertical", "full"] {
        in_three_tries("managed waits", || {
            let recording = record(&app, &["--off-cpu", "--stack", stack])?;
            let session = recording.session().display().to_string();
            judge("waits.py", [session, ROUNDS.to_string()])
        })?;
    }
    Ok(())
}

/// Without a program that walks frames, they come from copies of the stack, and the session has a note.
#[test]
fn managed_threads_wait_in_their_methods_where_the_kernel_refuses_to_walk_all_frames() -> Result<()>
{
    if skip_without_root("managed waits without walkers") {
        return Ok(());
    }
    const ROUNDS: u32 = 25;
    let folder = tempfile::tempdir()?;
    let refuses = folder.path().join("refuses_walkers.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/host/refuses_walkers.c");
    let cc = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .arg(source)
        .arg("-o")
        .arg(&refuses)
        .status()?;
    ensure!(cc.success(), "cc: {cc}");
    let app = App::new("waits", "waits", ROUNDS)?;
    in_three_tries("managed waits without walkers", || {
        let place = tempfile::tempdir_in(folder.path())?;
        let session = place.path().join("session");
        let output = testbed()?
            .varid()
            .env("LD_PRELOAD", &refuses)
            .args(["record", "--off-cpu", "-o"])
            .arg(&session)
            .arg("--")
            .args(app.arguments())
            .output()?;
        succeeded(&output)?;
        let notes = manifest(&session)?["notes"].to_string();
        ensure!(
            notes.contains("taken from copies of their stacks"),
            "{notes}"
        );
        judge(
            "waits.py",
            [session.display().to_string(), ROUNDS.to_string()],
        )
    })
}

#[test]
fn a_thread_that_waits_when_the_session_begins_and_ends_has_all_of_its_time() -> Result<()> {
    if skip_without_root("long waits") {
        return Ok(());
    }
    let waits = Waits::new()?;
    let mut program = waits.program(&["600000", "reads"]);
    let program = Ended(program.stdout(Stdio::null()).spawn()?);
    let pid = program.0.id();
    let tasks = format!("/proc/{pid}/task");
    let begun = Instant::now();
    let blocked = |tid: &str| {
        let call = std::fs::read_to_string(format!("{tasks}/{tid}/syscall"));
        call.is_ok_and(|call| !call.starts_with("running"))
    };
    let threads = loop {
        let entries = std::fs::read_dir(&tasks)?.flatten();
        let tids: Vec<_> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        if tids.len() == 2 && tids.iter().all(|tid| blocked(tid)) {
            break tids;
        }
        ensure!(begun.elapsed() < HANGS, "the program does not wait");
        std::thread::yield_now();
    };
    let session = waits.path("session");
    let output = testbed()?
        .varid()
        .args(["record", "-e", "off-cpu", "--duration", "2", "--pid"])
        .arg(pid.to_string())
        .arg("-o")
        .arg(&session)
        .output()?;
    succeeded(&output)?;
    let manifest = manifest(&session)?;
    let duration = manifest["duration_ns"].as_u64().context("duration")?;
    let samples = samples(&session)?;
    for tid in threads {
        let tid: u32 = tid.parse()?;
        let of_thread = samples.iter().filter(|(of, ..)| *of == tid);
        let sum: u64 = of_thread.map(|(_, _, period)| period).sum();
        // The time until the process is found and until the events are closed.
        ensure!(
            sum <= duration + duration / 4 && sum >= duration / 2 && sum >= 1_500_000_000,
            "thread {tid}: {sum} of {duration} ns"
        );
    }
    let unattributed = &manifest["counts"]["unattributed"];
    ensure!(unattributed["not-captured"] == 2, "{unattributed}");
    Ok(())
}

#[test]
fn processes_that_end_while_their_threads_wait_cost_no_record() -> Result<()> {
    if skip_without_root("a storm of processes") {
        return Ok(());
    }
    let waits = Waits::new()?;
    let session = waits.record(&["--off-cpu"], &["2000", "storm"])?;
    let manifest = manifest(&session)?;
    ensure!(manifest["state"] == "complete", "{manifest}");
    ensure!(manifest["counts"]["malformed"].is_null(), "{manifest}");
    let samples = samples(&session)?;
    ensure!(samples.iter().any(|(_, event, _)| event == "off-cpu"));
    // No thread waits longer than the session's duration.
    let duration = manifest["duration_ns"].as_u64().context("duration")?;
    let longest = samples.iter().map(|(_, _, period)| *period).max();
    ensure!(longest <= Some(duration), "{longest:?} of {duration} ns");
    Ok(())
}

#[test]
fn a_tracepoint_has_a_sample_of_each_time_that_a_thread_comes_by() -> Result<()> {
    if skip_without_root("tracepoints") {
        return Ok(());
    }
    let waits = Waits::new()?;
    let session = waits.record(&["-e", "sched:sched_switch"], &["1000", "sleeps_long"])?;
    let samples = samples(&session)?;
    let printed = std::fs::read_to_string(waits.path("printed"))?;
    let words: Vec<_> = printed.split_whitespace().collect();
    let [_, tid, .., turns] = words[..] else {
        anyhow::bail!("{printed}")
    };
    let (tid, turns): (u32, usize) = (tid.parse()?, turns.parse()?);
    let of_thread = samples
        .iter()
        .filter(|(of, event, period)| *of == tid && event == "sched:sched_switch" && *period == 1);
    // The program counts its turns before its last one ends, and a few more may follow.
    let count = of_thread.count();
    ensure!(
        (turns - 1..turns + 10).contains(&count),
        "{count} samples of {turns} turns"
    );
    let output = testbed()?
        .varid()
        .args(["record", "-e", "sched:no_such_tracepoint", "-o"])
        .arg(waits.path("none"))
        .args(["--", "true"])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("no tracepoint 'no_such_tracepoint'"),
        "{said}"
    );
    Ok(())
}

#[test]
fn a_session_loads_what_waits_need_only_if_it_has_their_events() -> Result<()> {
    if skip_without_root("programs") {
        return Ok(());
    }
    let waits = Waits::new()?;
    for (options, expected) in [(&[][..], false), (&["--off-cpu"][..], true)] {
        let mut varid = testbed()?.varid();
        varid.arg("record").args(options).arg("-o");
        varid.arg(waits.path("session")).arg("--");
        varid.arg(waits.path("waits")).args(["600000", "reads"]);
        let mut varid = Ended(varid.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let folder = format!("/proc/{}/fdinfo", varid.0.id());
        let begun = Instant::now();
        // When the program runs, everything is loaded.
        let children = format!("/proc/{0}/task/{0}/children", varid.0.id());
        let child = loop {
            // varid also has a child that reads files.
            let found = std::fs::read_to_string(&children)?;
            let is_program = |child: &&str| {
                let exe = std::fs::read_link(format!("/proc/{child}/exe"));
                exe.is_ok_and(|exe| exe == waits.path("waits"))
            };
            if let Some(child) = found.split_whitespace().find(is_program) {
                break child.to_owned();
            }
            ensure!(begun.elapsed() < HANGS, "the program does not start");
            std::thread::yield_now();
        };
        let descriptors = std::fs::read_dir(folder)?.flatten();
        let programs = descriptors.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
        let found = programs
            .filter(|text| text.contains(RAW_TRACEPOINT))
            .count();
        ensure!((found > 0) == expected, "{options:?}: {found} programs");
        // varid ends with its command.
        let killed = Command::new("kill").args(["-9", &child]).status()?;
        ensure!(killed.success(), "kill: {killed}");
        varid.0.wait()?;
    }
    Ok(())
}
