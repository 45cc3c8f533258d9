//! Tests that varid counts and reports samples that its rings had no space for, and that later samples are correct.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use varid_tests::{App, Running, is_stopped, manifest, printed, skip_without_root, testbed, ticks};

/// Samples per second of the app's CPU time.
const RATE: u64 = 4999;
/// The seconds of the app's CPU time for which varid is stopped after its rings are full.
const SECONDS: u64 = 2;
/// The pages of each CPU's ring, a power of two. A sample takes at least 200 bytes.
const PAGES: u64 = 16;
const BYTES: u64 = 200;
/// The timeout for events that normally take much less.
const PATIENCE: Duration = Duration::from_secs(600);
/// Clock ticks per second, the unit of CPU time in /proc.
const TICKS: u64 = 100;

#[test]
fn what_a_full_ring_has_no_room_for_is_counted_and_what_comes_next_is_named() -> Result<()> {
    if skip_without_root("overrun") {
        return Ok(());
    }
    // It runs longer than this test, and ends with it.
    let app = App::new("truth", "shares", i32::MAX as u32)?;
    let mut app = Running(app.command().stdout(Stdio::null()).spawn()?);
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let mut varid = testbed()?.varid();
    varid
        .args([
            "record",
            "--ring-pages",
            &PAGES.to_string(),
            "-F",
            &RATE.to_string(),
        ])
        .args(["--pid", &app.pid().to_string(), "-o"])
        .arg(&session);
    let mut varid = Running(varid.stderr(Stdio::null()).spawn()?);
    let (pid, daemon) = (app.pid().to_string(), varid.pid().to_string());
    let process = Pid::from_raw(varid.pid().try_into()?);
    let signal = |signal| kill(process, signal);

    let mut live = [&mut app, &mut varid];
    wait(&mut live, || samples(&session) > 1000)?;
    signal(Signal::SIGSTOP)?;
    wait(&mut live, || is_stopped(&daemon))?;
    let processors = sysconf(SysconfVar::_NPROCESSORS_CONF)?.context("no processors")? as u64;
    let room = (processors * PAGES * 4096).next_power_of_two() / BYTES;
    let full = ticks(&pid).context("the app ended")? + room * TICKS / RATE;
    wait(&mut live, || ticks(&pid) >= Some(full + SECONDS * TICKS))?;
    let before = samples(&session);
    let resumed = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?).as_secs_f64();
    signal(Signal::SIGCONT)?;
    // Samples that the manifest does not count yet, those in the ring, and 5,000 that are judged.
    wait(&mut live, || samples(&session) > before + room + 5000)?;
    signal(Signal::SIGINT)?;
    ensure!(varid.0.wait()?.success(), "varid failed");

    let counts = manifest(&session)?["counts"].clone();
    println!("overrun: {counts}");
    let lost = counts["lost"].as_u64().context("no count of lost")?;
    // Of about 10,000. On a host that takes CPU time from this machine, the kernel's timer skips some.
    ensure!(lost > RATE * SECONDS / 4, "{counts}");

    let file = session.join("perf.data");
    let (told, after) = read_by_perf(&file, resumed)?;
    ensure!(told == lost, "perf is told of {told} lost, {lost} were");
    let next = after.get(..2000);
    let next = next.with_context(|| format!("only {} came next", after.len()))?;
    let named = next.iter().filter(|sample| sample.contains(METHODS));
    let named = named.count();
    println!(
        "overrun: {named} of {} that came next are named",
        next.len()
    );
    ensure!(named * 10 > next.len() * 9, "{named} of {}", next.len());
    Ok(())
}

/// The prefix of the methods that are in all of the app's stacks.
const METHODS: &str = "org.example.truth.";

/// Returns the number of lost records by perf, and the samples after a time in seconds.
fn read_by_perf(file: &Path, since: f64) -> Result<(u64, Vec<String>)> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--no-inline", "--show-lost-events"]);
    perf.args(["-F", "time,ip,sym", "-i"]);
    let script = printed(perf.arg(file))?;
    let mut lost = 0;
    let mut after = Vec::new();
    for line in script.lines() {
        if let Some((_, count)) = line.split_once("PERF_RECORD_LOST lost ") {
            lost += count.trim().parse::<u64>()?;
        }
    }
    for sample in script.split("\n\n") {
        let head = sample
            .lines()
            .find_map(|line| line.trim().strip_suffix(':'));
        if head
            .and_then(|time| time.parse::<f64>().ok())
            .is_some_and(|time| time > since)
        {
            after.push(sample.to_owned());
        }
    }
    Ok((lost, after))
}

/// Waits for a condition on processes that must not end before.
fn wait(live: &mut [&mut Running], until: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !until() {
        ensure!(begun.elapsed() < PATIENCE, "it never comes");
        std::thread::yield_now();
        for process in live.iter_mut() {
            ensure!(process.runs()?, "process {} has ended", process.pid());
        }
    }
    Ok(())
}

/// Returns the number of samples that a running session has written to disk.
fn samples(session: &Path) -> u64 {
    let counts = manifest(session).map(|manifest| manifest["counts"]["samples"].as_u64());
    counts.ok().flatten().unwrap_or(0)
}
