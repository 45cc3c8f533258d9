//! Tests that allocations of Java programs, and their waits for locks, are sampled as often as they happen, with class and bytes.
#![cfg(target_arch = "x86_64")]

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use varid_tests::{
    JAVA_PACKAGE, JDK, Running, has_jdk, java_classes, java_homes, manifest, printed,
    report_by_symbol, row_of, skip_without_root, skipped, testbed,
};

const ROUNDS: u64 = 25;
/// The heap's regions are so small that none of the program's arrays is allocated in a thread's buffer.
const HEAP: [&str; 3] = ["-Xmx256m", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m"];

/// A method of the program that allocates arrays.
struct Allocating {
    name: &'static str,
    class: &'static str,
    /// Bytes of an array.
    size: u64,
    /// Calls in each round.
    calls: u64,
}

/// With compressed pointers: the header of an array has 16 bytes, and a pointer has 4.
const ARRAYS: [Allocating; 3] = [
    Allocating {
        name: "bytes",
        class: "byte[]",
        size: 16 + 700_000,
        calls: 1,
    },
    Allocating {
        name: "longs",
        class: "long[]",
        size: 16 + 8 * 100_000,
        calls: 2,
    },
    Allocating {
        name: "items",
        class: "org.example.truth.Allocations$Item[]",
        size: 16 + 4 * 200_000,
        calls: 1,
    },
];
/// Bytes of the small objects.
const SMALL: u64 = 2_000_000 * 32;

fn skip(test: &str) -> bool {
    let pmu = Path::new("/sys/bus/event_source/devices/uprobe/type");
    if !has_jdk() || !pmu.exists() {
        skipped(
            test,
            "there is no openjdk-17-jdk-headless, or the kernel has no uprobes",
        );
        return true;
    }
    skip_without_root(test)
}

/// The `java` programs of Debian 12's JDK, of others on this machine, and of the variable JAVA_HOMES, separated by colons.
fn javas() -> Result<Vec<PathBuf>> {
    let homes = java_homes()?.into_iter();
    Ok(homes.map(|home| home.join("bin/java")).collect())
}

/// A sample: its frames' symbols, and its weight.
struct Hit {
    symbols: Vec<String>,
    period: u64,
}

impl Hit {
    fn has(&self, symbol: &str) -> bool {
        self.symbols.iter().any(|known| known == symbol)
    }
}

/// Records a program of the workloads with these events. Returns what it has printed.
fn record(java: &Path, events: &[&str], main: &str, session: &Path) -> Result<String> {
    let mut varid = testbed()?.varid();
    varid.args(["record", "-q", "--ring-pages", "8192"]);
    for event in events {
        varid.args(["-e", event]);
    }
    varid.arg("-o").arg(session).arg("--").arg(java).args(HEAP);
    varid.arg("-cp").arg(java_classes()?);
    varid.args([format!("{JAVA_PACKAGE}.{main}"), ROUNDS.to_string()]);
    printed(varid.stdin(Stdio::null()))
}

/// Returns the samples of an event.
fn hits(session: &Path, event: &str) -> Result<Vec<Hit>> {
    let mut export = testbed()?.varid();
    export.args(["export", "-q", "-f", "jsonl", "-o", "-", "-e", event, "-i"]);
    let mut hits = Vec::new();
    for line in printed(export.arg(session))?.lines() {
        let sample: Value = serde_json::from_str(line)?;
        let Some(frames) = sample["frames"].as_array() else {
            continue;
        };
        let symbols = frames.iter().filter_map(|frame| frame["symbol"].as_str());
        hits.push(Hit {
            symbols: symbols.map(str::to_owned).collect(),
            period: sample["period"].as_u64().context("no period")?,
        });
    }
    Ok(hits)
}

#[test]
fn each_large_array_is_a_sample_of_its_class_and_its_bytes() -> Result<()> {
    if skip("allocations") {
        return Ok(());
    }
    for java in javas()? {
        let folder = tempfile::tempdir()?;
        let session = folder.path().join("session");
        record(&java, &["alloc"], "Allocations", &session)?;
        let hits = hits(&session, "alloc")?;
        let in_method = |method: &str| {
            let method = format!("{JAVA_PACKAGE}.Allocations.{method}");
            let hits = hits.iter();
            hits.filter(move |hit| hit.has(&method)).collect::<Vec<_>>()
        };
        for method in ARRAYS {
            let Allocating { name, class, .. } = method;
            let found = in_method(name);
            let of_class = found.iter().filter(|hit| hit.has(class)).count() as u64;
            let bytes: u64 = found.iter().map(|hit| hit.period).sum();
            let calls = ROUNDS * method.calls;
            ensure!(
                (of_class, bytes) == (calls, calls * method.size) && found.len() as u64 == of_class,
                "{}: {name}: {of_class} {class} of {calls}, {bytes} bytes",
                java.display()
            );
        }
        // A sample of a buffer stands for all that the thread allocates in it, which is a little less than its size.
        let small = in_method("small");
        let class = format!("{JAVA_PACKAGE}.Allocations$Item");
        let bytes: u64 = small.iter().map(|hit| hit.period).sum();
        println!(
            "{}: {} buffers, {bytes} bytes for {SMALL}",
            java.display(),
            small.len()
        );
        ensure!(small.iter().all(|hit| hit.has(&class)));
        ensure!(bytes.abs_diff(SMALL) < SMALL / 10, "{bytes} of {SMALL}");
        let report = report_by_symbol(&session)?;
        let longs = row_of(&report, "long[]")?;
        ensure!(longs["self"].as_u64() >= Some(2 * ROUNDS), "{longs}");
        ensure!(manifest(&session)?["event"]["unit"] == "bytes");
        ensure!(manifest(&session)?["counts"]["lost"] == 0);
    }
    Ok(())
}

#[test]
fn a_period_of_bytes_has_one_sample() -> Result<()> {
    if skip("periods of allocations") {
        return Ok(());
    }
    const PERIOD: u64 = 4 << 20;
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let event = format!("alloc/period={PERIOD}/");
    record(
        &Path::new(JDK).join("java"),
        &[&event],
        "Allocations",
        &session,
    )?;
    let hits = hits(&session, "alloc")?;
    ensure!(hits.iter().all(|hit| hit.period == PERIOD));
    let arrays: u64 = ARRAYS.iter().map(|it| it.size * it.calls).sum();
    let (found, allocated) = (hits.len() as u64 * PERIOD, arrays * ROUNDS + SMALL);
    // The rest of each processor, what the VM allocates to start, and the ends of buffers.
    ensure!(
        found.abs_diff(allocated) < allocated / 5,
        "{found} of {allocated}"
    );
    Ok(())
}

#[test]
fn each_wait_for_a_monitor_and_each_park_is_a_sample_of_its_method() -> Result<()> {
    if skip("locks") {
        return Ok(());
    }
    for java in javas()? {
        let folder = tempfile::tempdir()?;
        let session = folder.path().join("session");
        let said = record(&java, &["lock", "park"], "Contended", &session)?;
        let counts = said.trim().split_once(' ').context("no counts")?;
        for (event, method, expected) in [("lock", "enter", counts.0), ("park", "park", counts.1)] {
            let method = format!("{JAVA_PACKAGE}.Contended.{method}");
            let hits = hits(&session, event)?;
            let found = hits.iter().filter(|hit| hit.has(&method)).count();
            ensure!(
                found.to_string() == expected && hits.iter().all(|hit| hit.period == 1),
                "{}: {event}: {found} of {expected}",
                java.display()
            );
        }
    }
    Ok(())
}

#[test]
fn a_running_jvm_is_sampled_by_its_id() -> Result<()> {
    if skip("locks of a running JVM") {
        return Ok(());
    }
    let mut java = Command::new(Path::new(JDK).join("java"));
    java.arg("-cp").arg(java_classes()?).stdout(Stdio::null());
    let running = java.args([&format!("{JAVA_PACKAGE}.Contended"), "100000"]);
    let running = Running(running.spawn()?);
    let folder = tempfile::tempdir()?;
    let session = folder.path().join("session");
    let mut varid = testbed()?.varid();
    varid.args(["record", "-q", "-e", "lock", "--duration", "1s", "-p"]);
    printed(varid.arg(running.pid().to_string()).arg("-o").arg(&session))?;
    let hits = hits(&session, "lock")?;
    let method = format!("{JAVA_PACKAGE}.Contended.enter");
    let found = hits.iter().filter(|hit| hit.has(&method)).count();
    println!("a running JVM: {found} waits");
    ensure!(found > 50, "{found} of {}", hits.len());
    Ok(())
}

#[test]
fn what_a_jvm_lacks_is_said_before_the_command_runs() -> Result<()> {
    if skip("a JVM without symbols") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (program, library) = (
        folder.path().join("bin/java"),
        folder.path().join("lib/server"),
    );
    std::fs::create_dir_all(folder.path().join("bin"))?;
    std::fs::create_dir_all(&library)?;
    let ran = folder.path().join("ran");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", ran.display()))?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    std::fs::copy("/bin/true", library.join("libjvm.so"))?;
    let record = |event: &str| -> Result<Output> {
        let session = folder.path().join(format!("session-{event}"));
        let mut varid = testbed()?.varid();
        varid.args(["record", "-e", event, "-o"]).arg(session);
        Ok(varid.arg("--").arg(&program).output()?)
    };
    for (event, said) in [
        ("alloc", "AllocTracer::send_allocation_in_new_tlab"),
        ("lock", "ObjectMonitor::EnterI"),
        ("park", "Unsafe_Park"),
    ] {
        let output = record(event)?;
        let text = String::from_utf8_lossy(&output.stderr);
        let is_said = text.contains(said) && text.contains("libjvm.so") && text.contains("-dbg");
        ensure!(!output.status.success() && is_said, "{text}");
        ensure!(!ran.exists(), "{event}: the command has run");
    }
    ensure!(record("cpu-clock")?.status.success() && ran.exists());
    Ok(())
}
