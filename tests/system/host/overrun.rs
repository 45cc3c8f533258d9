//! What if varid cannot keep up? What its rings had no room for is counted and told, and what comes next is as good as before.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use varid_tests::{App, Running, is_stopped, manifest, printed, skip_without_root, testbed, ticks};

/// Samples of a second of the app's time.
const RATE: u64 = 4999;
/// Varid stands still for so many seconds of the app's time beyond what its rings have room for.
const SECONDS: u64 = 2;
/// Of the ring, for each processor that there may be, up to a power of two; a sample takes 200 bytes and more.
const PAGES: u64 = 16;
const BYTES: u64 = 200;
/// What never takes so long has failed.
const PATIENCE: Duration = Duration::from_secs(600);
/// In a second, of those in which the kernel counts a process's time.
const TICKS: u64 = 100;

#[test]
fn what_a_full_ring_has_no_room_for_is_counted_and_what_comes_next_is_named() -> Result<()> {
    if skip_without_root("overrun") {
        return Ok(());
    }
    // It has work for longer than this test takes, and ends with it.
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
    // What the manifest does not count yet, what the ring holds, and as many again as are judged.
    wait(&mut live, || samples(&session) > before + room + 5000)?;
    signal(Signal::SIGINT)?;
    ensure!(varid.0.wait()?.success(), "varid failed");

    let counts = manifest(&session)?["counts"].clone();
    println!("overrun: {counts}");
    let lost = counts["lost"].as_u64().context("no count of lost")?;
    // Of about 10,000; a host that takes its time from the machine has the kernel's timer skip some.
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

/// What all of the app's samples are in or below.
const METHODS: &str = "org.example.truth.";

/// How many records perf finds to be lost, and the samples after a time in seconds.
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

/// Waits for something of processes that must not end before.
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

/// How many samples a session that runs has brought to the disk.
fn samples(session: &Path) -> u64 {
    let counts = manifest(session).map(|manifest| manifest["counts"]["samples"].as_u64());
    counts.ok().flatten().unwrap_or(0)
}
