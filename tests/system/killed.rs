//! Is every recording readable after a SIGKILL, whenever it comes?

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use varid_tests::{App, is_alive, skip_without_root, testbed};

const KILLS: usize = 100;
/// The latest moment of a kill: by then a recording has been brought to the disk several times.
const LATEST: Duration = Duration::from_millis(3000);
/// Recordings at the same time.
const AT_ONCE: usize = 5;

/// splitmix64: the moments are the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

/// Kills a recording of a process after a while.
fn kill_after(pid: u32, moment: Duration, session: &Path) -> Result<()> {
    let mut varid = testbed()?.varid();
    varid
        .args(["record", "-F", "499", "--pid", &pid.to_string(), "-o"])
        .arg(session);
    let mut varid = varid
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // The moment itself is what is tried; nothing is expected of it.
    std::thread::sleep(moment);
    varid.kill()?;
    varid.wait()?;
    Ok(())
}

/// What an unmodified perf makes of a file: samples, and how many of them have a method's name.
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
    let mut command = Command::new("perf");
    let output = command
        .args(arguments)
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .context("perf")?;
    ensure!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What became of the killed recordings.
#[derive(Debug, Default)]
struct Outcome {
    kills: usize,
    begun: usize,
    with_samples: usize,
    samples: usize,
    named: usize,
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
    let mut random = Random(seed);
    let moments: Vec<Duration> = (0..KILLS)
        .map(|_| Duration::from_micros(random.next() % LATEST.as_micros() as u64))
        .collect();

    // It has work for longer than this test takes, and is told to stop at its end.
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
    ensure!(survived, "the app ended");
    ensure!(
        outcome.with_samples * 10 >= KILLS,
        "too few recordings had samples: {outcome:?}"
    );
    Ok(())
}

fn kill_all(pid: u32, moments: &[Duration]) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let mut outcome = Outcome::default();
    for (batch, moments) in moments.chunks(AT_ONCE).enumerate() {
        let sessions: Vec<_> = (0..moments.len())
            .map(|n| folder.path().join(format!("{batch}-{n}")))
            .collect();
        std::thread::scope(|scope| {
            let kills: Vec<_> = moments
                .iter()
                .zip(&sessions)
                .map(|(moment, session)| scope.spawn(move || kill_after(pid, *moment, session)))
                .collect();
            kills.into_iter().try_for_each(|kill| {
                kill.join()
                    .map_err(|_| anyhow::anyhow!("a kill panicked"))?
            })
        })?;
        for (session, moment) in sessions.iter().zip(moments) {
            outcome.kills += 1;
            let file = session.join("perf.data");
            if !file.exists() {
                continue;
            }
            outcome.begun += 1;
            let (samples, named) =
                read_by_perf(&file).with_context(|| format!("killed after {moment:?}"))?;
            outcome.samples += samples;
            outcome.named += named;
            outcome.with_samples += usize::from(samples > 0);
            // All that a running app does here is in its methods, or below them.
            ensure!(
                named * 10 >= samples * 9,
                "killed after {moment:?}: only {named} of {samples} samples name a method"
            );
        }
    }
    Ok(outcome)
}
