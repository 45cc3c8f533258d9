//! Tests that every recording is readable after a SIGKILL at any time.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use varid_tests::{App, Scale, is_alive, on_threads, printed, scale, skip_without_root, testbed};

/// Returns the number of killed recordings.
fn kills() -> usize {
    match scale() {
        Scale::Gate => 24,
        Scale::Long => 100,
    }
}

/// The latest time of a kill. By then a recording has been flushed several times.
const LATEST: Duration = Duration::from_millis(3000);
/// The number of parallel recordings. Each of them mostly waits for its time.
const AT_ONCE: usize = 8;

/// With fewer samples, most may be of one of the VM's own threads.
const SEVERAL: usize = 50;
/// The timeout for samples.
const NEVER: Duration = Duration::from_secs(120);
/// One in this number is not killed before it has samples, under any load.
const SAMPLED: usize = 8;

/// splitmix64. The same seed has the same times.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

/// Kills a recording of a process after a delay from its start, or from when perf finds samples in it.
fn kill_after(pid: u32, moment: Duration, session: &Path, sampled: bool) -> Result<()> {
    let mut varid = testbed()?.varid();
    varid
        .args(["record", "-F", "499", "--pid", &pid.to_string(), "-o"])
        .arg(session);
    let mut varid = varid
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let started = Instant::now();
    while sampled && has_no_samples(session) {
        ensure!(
            varid.try_wait()?.is_none(),
            "it ended before it had samples"
        );
        ensure!(started.elapsed() < NEVER, "it has no samples");
    }
    // The delay itself is tested. Nothing is expected to happen within it.
    std::thread::sleep(moment);
    varid.kill()?;
    varid.wait()?;
    Ok(())
}

/// Returns true if perf finds no samples yet, or no readable file.
fn has_no_samples(session: &Path) -> bool {
    !read_by_perf(&session.join("perf.data")).is_ok_and(|(samples, _)| samples > 0)
}

/// Reads a file by an unmodified perf. Returns the number of samples, and of those with a method's name.
fn read_by_perf(file: &Path) -> Result<(usize, usize)> {
    let script = perf(
        &["script", "--no-inline", "-F", "tid,time,ip,sym", "-i"],
        file,
    )?;
    let samples: Vec<&str> = script
        .split("\n\n")
        .filter(|sample| !sample.trim().is_empty())
        .collect();
    let named = samples
        .iter()
        .filter(|sample| sample.contains("org.example.truth."))
        .count();
    let report = perf(
        &[
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "none",
            "--sort",
            "symbol",
            "-i",
        ],
        file,
    )?;
    let in_report = report.contains("org.example.truth.");
    let leaves = samples.iter().filter(|sample| {
        sample
            .lines()
            .nth(1)
            .is_some_and(|leaf| leaf.contains("org.example.truth."))
    });
    ensure!(
        in_report == (leaves.count() > 0),
        "perf report and perf script of {} differ:\n{report}",
        file.display()
    );
    Ok((samples.len(), named))
}

fn perf(arguments: &[&str], file: &Path) -> Result<String> {
    printed(Command::new("perf").args(arguments).arg(file))
}

/// Checks that the next recording can replace the remains of a recording that was killed at its start.
fn replace(session: &Path) -> Result<()> {
    let mut again = testbed()?.varid();
    again.args(["record", "-o"]).arg(session);
    printed(again.args(["--", "true"])).map(drop)
}

/// The results of the killed recordings.
#[derive(Debug, Default)]
struct Outcome {
    kills: usize,
    begun: usize,
    with_samples: usize,
    samples: usize,
    named: usize,
}

impl Outcome {
    /// Reads the remains of a killed recording by perf.
    fn read(&mut self, session: &Path) -> Result<()> {
        self.kills += 1;
        let file = session.join("perf.data");
        let (mut samples, mut named) = (0, 0);
        if file.exists() {
            self.begun += 1;
            (samples, named) = read_by_perf(&file)?;
        }
        if samples == 0 {
            replace(session)?;
        }
        self.samples += samples;
        self.named += named;
        self.with_samples += usize::from(samples > 0);
        ensure!(
            samples < SEVERAL || Self::are_named(named, samples),
            "only {named} of {samples} samples name a method"
        );
        Ok(())
    }

    /// A running app spends all its time here in its methods, or below them.
    fn are_named(named: usize, samples: usize) -> bool {
        named * 10 >= samples * 9
    }

    fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.begun += other.begun;
        self.with_samples += other.with_samples;
        self.samples += other.samples;
        self.named += other.named;
    }
}

#[test]
fn perf_reads_every_recording_that_a_sigkill_ended_and_names_methods_in_it() -> Result<()> {
    if skip_without_root("killed") {
        return Ok(());
    }
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)?
        .as_nanos() as u64;
    println!("killed: seed {seed}");
    let (kills, mut random) = (kills(), Random(seed));
    let moments: Vec<Duration> = (0..kills)
        .map(|_| Duration::from_micros(random.next() % LATEST.as_micros() as u64))
        .collect();

    // It runs longer than this test, and is stopped at its end.
    let mut app = App::new("truth", "shares", i32::MAX as u32)?
        .command()
        .stdout(Stdio::null())
        .spawn()?;
    let outcome = kill_all(app.id(), &moments);
    let survived = is_alive(&app.id().to_string());
    app.kill()?;
    app.wait()?;
    let outcome = outcome.with_context(|| format!("seed {seed}"))?;
    println!("killed: {outcome:?}");
    ensure!(outcome.kills == kills, "{outcome:?}");
    ensure!(survived, "the app ended");
    ensure!(
        outcome.with_samples * 10 >= kills,
        "too few recordings had samples: {outcome:?}"
    );
    ensure!(
        Outcome::are_named(outcome.named, outcome.samples),
        "{outcome:?}"
    );
    Ok(())
}

/// Kills a recording after each of these delays, several in parallel, and reads the remains.
fn kill_all(pid: u32, moments: &[Duration]) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let next = AtomicUsize::new(0);
    // Each thread takes the next delay after it has read the last remains.
    let kill_and_read = || -> Result<Outcome> {
        let mut outcome = Outcome::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(moment) = moments.get(number) else {
                return Ok(outcome);
            };
            let session = folder.path().join(number.to_string());
            kill_after(pid, *moment, &session, number.is_multiple_of(SAMPLED))?;
            outcome
                .read(&session)
                .with_context(|| format!("killed after {moment:?}"))?;
        }
    };
    let mut all = Outcome::default();
    for outcome in on_threads(AT_ONCE, kill_and_read)? {
        all.add(&outcome);
    }
    Ok(all)
}
