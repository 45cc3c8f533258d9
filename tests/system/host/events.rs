//! Tests that several events of a session are counted, separated and shown, without a PMU. The ground truth is the
//! kernel's count of a program's page faults.
#![allow(missing_docs)]

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use varid_tests::{skip_without_root, testbed};

/// At this period the samples of all events fit into a ring, even with stack copies, however late it is read.
const PERIOD: u64 = 1000;
/// The number of pages that the program touches for the first time.
const PAGES: u64 = 40_000;

/// An absolute path. A wrapper script in PATH would have page faults, too.
const PYTHON: &str = "/usr/bin/python3";

/// Touches this number of pages, computes for a while, and prints its number of minor faults up to then. Where
/// possible, it is alone on its CPU: counts of a CPU between two ticks are attributed to the task at the second tick.
const PROGRAM: &str = "
import mmap, os, resource
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    pass
size = mmap.PAGESIZE
memory = mmap.mmap(-1, TOUCHED * size)
if hasattr(memory, 'madvise'):
    memory.madvise(mmap.MADV_NOHUGEPAGE)
for page in range(TOUCHED):
    memory[page * size] = 1
sum(i * i for i in range(3_000_000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
";

struct Recorded {
    folder: tempfile::TempDir,
    /// The number that the program printed.
    faults: u64,
}

impl Recorded {
    fn new(options: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = PROGRAM.replace("TOUCHED", &PAGES.to_string());
        let output = testbed()?
            .varid()
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(folder.path().join("session"))
            .args(["--", PYTHON, "-c", &program])
            .output()?;
        ensure!(output.status.success(), "{options:?}: {}", said(&output));
        let printed = String::from_utf8_lossy(&output.stdout);
        Ok(Self {
            faults: printed.trim().parse().context("the program's count")?,
            folder,
        })
    }

    fn session(&self) -> PathBuf {
        self.folder.path().join("session")
    }

    fn report(&self, options: &[&str]) -> Result<Output> {
        let mut report = testbed()?.varid();
        report
            .args(["report", "-i"])
            .arg(self.session())
            .args(options);
        Ok(report.output()?)
    }

    fn json(&self, event: &str) -> Result<Value> {
        let output = self.report(&["-e", event, "--format", "json"])?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Returns samples and sums of periods by event, as read by perf.
    fn by_perf(&self) -> Result<BTreeMap<String, (u64, u64)>> {
        perf_script(&self.session().join("perf.data"))
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn perf_script(data: &Path) -> Result<BTreeMap<String, (u64, u64)>> {
    let output = Command::new("perf")
        .args(["script", "-f", "-F", "event,period", "-G", "-i"])
        .arg(data)
        .output()?;
    ensure!(output.status.success(), "perf: {}", said(&output));
    let mut events = BTreeMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let (period, name) = line
            .trim()
            .split_once(char::is_whitespace)
            .context("a sample")?;
        let name = name.trim().trim_end_matches(':').to_owned();
        let (samples, sum) = events.entry(name).or_insert((0, 0));
        *samples += 1;
        *sum += period.parse::<u64>()?;
    }
    Ok(events)
}

fn sources() -> &'static [&'static str] {
    if skip_without_root("the BPF shim's events") {
        &["perf"]
    } else {
        &["bpf", "perf"]
    }
}

#[test]
fn a_period_is_exact_for_every_event_of_a_session() -> Result<()> {
    // With the kernel's own samples, there must not be one for each fault.
    let raw = ["--shim", "bpf", "--keep-raw"];
    for source in [&["--shim", "perf"], &["--shim", "bpf"], &raw[..]] {
        if source[1] == "bpf" && skip_without_root("the period of page faults") {
            continue;
        }
        let period = PERIOD.to_string();
        let events = ["-e", "page-faults", "-e", "minor-faults", "-c", &period];
        let recorded = Recorded::new(&[source, &events].concat())?;
        // A CPU's counter includes faults of other tasks: each time the program moves to a CPU, its samples may differ
        // by one from its own faults. Most faults are touches in one stretch. While Python starts, other tasks run in
        // between.
        let stretches = if source[1] == "bpf" { 5 } else { 1 };
        exact(&recorded, stretches)?;
        if source == raw {
            let own = perf_script(&recorded.session().join("raw.data"))?;
            let all = recorded.by_perf()?;
            // The names of the events also show the counted mode.
            assert!(all.values().eq(own.values()), "{all:?} of {own:?}");
        }
    }
    Ok(())
}

fn exact(recorded: &Recorded, stretches: u64) -> Result<()> {
    for event in ["page-faults", "minor-faults"] {
        let report = recorded.json(event)?;
        let number = |key: &str| report[key].as_u64().context(key.to_owned());
        let (samples, sum) = (number("samples")?, number("period_sum")?);
        assert_eq!((sum, number("period")?), (samples * PERIOD, PERIOD));
        // There are some faults before the program starts and after it has printed.
        assert!(
            sum + stretches * PERIOD > PAGES && sum < recorded.faults + (stretches + 1) * PERIOD,
            "{sum} {event} of {}",
            recorded.faults
        );
        assert_eq!(report["lost"], 0);
        let events = serde_json::json!(["page-faults", "minor-faults"]);
        assert_eq!(report["events"], events);
    }
    Ok(())
}

#[test]
fn a_rate_above_the_kernels_limit_is_lowered() -> Result<()> {
    const LIMIT: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
    let most: u64 = std::fs::read_to_string(LIMIT)?.trim().parse()?;
    for source in sources() {
        let folder = tempfile::tempdir()?;
        // An event that is rare enough to have no sample.
        let output = testbed()?
            .varid()
            .args(["record", "--shim", source, "-e", "context-switches", "-F"])
            .arg((most + 1).to_string())
            .arg("-o")
            .arg(folder.path().join("session"))
            .args(["--", "true"])
            .output()?;
        ensure!(output.status.success(), "{source}: {}", said(&output));
        assert!(said(&output).contains(LIMIT), "{source}: {}", said(&output));
    }
    Ok(())
}

#[test]
fn members_are_read_at_their_leaders_samples() -> Result<()> {
    for source in sources() {
        let group = "{cpu-clock,page-faults,context-switches}:S";
        let recorded = Recorded::new(&["--shim", source, "-e", group])?;
        let faults = recorded.json("page-faults")?;
        let counted = faults["period_sum"].as_u64().context("a sum")?;
        // Counts of a CPU between two ticks are attributed to the task there. A thread's counts are its own.
        let (least, most) = match *source {
            "perf" => (PAGES * 9 / 10, recorded.faults + 2_000),
            _ => (PAGES / 2, recorded.faults + PAGES / 2),
        };
        assert!(
            (least..=most).contains(&counted),
            "{source}: {counted} of {}",
            recorded.faults
        );
        let of = |event: &str| -> Result<u64> {
            recorded.json(event)?["samples"].as_u64().context("samples")
        };
        assert!(of("page-faults")? <= of("cpu-clock")?);
        // perf reads the same events, samples, sums and group.
        let theirs = recorded.by_perf()?;
        assert_eq!(theirs["page-faults"].1, counted);
        assert_eq!(theirs["page-faults"].0, of("page-faults")?);
        assert_eq!(theirs["cpu-clock"].0, of("cpu-clock")?);
        let header = Command::new("perf")
            .args(["report", "-f", "--header-only", "-i"])
            .arg(recorded.session().join("perf.data"))
            .output()?;
        let header = String::from_utf8(header.stdout)?;
        assert!(
            header.contains("group: {cpu-clock,page-faults,context-switches}"),
            "{header}"
        );
    }
    Ok(())
}

#[test]
fn events_of_a_plain_group_sample_by_themselves_and_are_shown_one_after_the_other() -> Result<()> {
    for source in sources() {
        let recorded =
            Recorded::new(&["--shim", source, "-e", "{cpu-clock,task-clock}", "-e", "cs"])?;
        let theirs = recorded.by_perf()?;
        for event in ["cpu-clock", "task-clock"] {
            let ours = recorded.json(event)?;
            assert_eq!(ours["samples"], theirs[event].0, "{source}: {event}");
            assert!(theirs[event].0 > 10, "{source}: {theirs:?}");
            assert_eq!(ours.get("running_percent"), None, "nothing took turns");
        }
        let text = recorded.report(&["--by", "layer"])?;
        let text = String::from_utf8(text.stdout)?;
        for event in ["cpu-clock", "task-clock", "cs"] {
            assert_eq!(
                text.matches(&format!("Event {event} at 997 Hz;")).count(),
                1,
                "{text}"
            );
        }
        let refused = recorded.report(&["-e", "cycles"])?;
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            said(&refused).contains("cpu-clock, task-clock, cs"),
            "{}",
            said(&refused)
        );
    }
    Ok(())
}

#[test]
fn an_event_that_is_not_there_is_answered_in_a_sentence() -> Result<()> {
    for (event, needle) in [
        ("page-fault", "page-faults"),
        ("cpu-clock:x", "unknown modifier 'x'"),
        ("{cpu-clock", "'{' without its '}'"),
        (
            "no_such_pmu/event=1/",
            "no PMU of this machine is called 'no_such_pmu'",
        ),
        ("cpu-clock:pppp", "more than three 'p'"),
    ] {
        let folder = tempfile::tempdir()?;
        let output = testbed()?
            .varid()
            .args(["record", "-e", event, "-o"])
            .arg(folder.path().join("session"))
            .args(["--", "true"])
            .output()?;
        assert_eq!(output.status.code(), Some(125), "{event}");
        assert!(said(&output).contains(needle), "{event}: {}", said(&output));
    }
    Ok(())
}
