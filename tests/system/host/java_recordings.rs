//! Tests that `varid import` makes of a recording of Java Flight Recorder what the JDK's own tool prints of it.
#![cfg(target_arch = "x86_64")]

use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tests::{JDK, javac, oracle, printed, skipped, testbed};

/// Events that are not recorded by default, or not if they are short.
const SETTINGS: [&str; 7] = [
    "settings=profile",
    "jdk.ObjectAllocationInNewTLAB#enabled=true",
    "jdk.ObjectAllocationOutsideTLAB#enabled=true",
    "jdk.JavaMonitorEnter#threshold=0ms",
    "jdk.JavaMonitorWait#threshold=0ms",
    "jdk.ThreadPark#threshold=0ms",
    "jdk.ThreadSleep#threshold=0ms",
];

/// Compiles the program and records it, in several chunks.
fn recording(folder: &Path) -> Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("jvm/truth");
    let mut javac = javac();
    javac.args(["--release", "11", "-d"]).arg(folder);
    printed(javac.args(["Truth.java", "Recorded.java"].map(|name| sources.join(name))))?;
    let file = folder.join("recording.jfr");
    let option = format!(
        "-XX:StartFlightRecording=filename={},{}",
        file.display(),
        SETTINGS.join(",")
    );
    let mut java = Command::new(format!("{JDK}/java"));
    java.arg(option).arg("-cp").arg(folder);
    printed(java.args(["org.example.truth.Recorded", "300"]))?;
    Ok(file)
}

#[test]
fn every_sample_is_the_one_that_the_jdk_s_tool_prints() -> Result<()> {
    if !Path::new(JDK).join("jfr").exists() {
        skipped("java_recordings", "there is no openjdk-17-jdk-headless");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let file = recording(folder.path())?;
    let session = folder.path().join("session");
    let mut varid = testbed()?.varid();
    printed(varid.arg("import").arg(&file).arg("-o").arg(&session))?;
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(session.join("session.json"))?)?;
    let start = manifest["start_time_ns"].to_string();
    let further = manifest["further_events"].as_array().into_iter().flatten();
    let events = std::iter::once(&manifest["event"]).chain(further);
    for event in events.filter_map(|event| event["name"].as_str()) {
        let mut varid = testbed()?.varid();
        varid
            .args(["export", "-f", "jsonl", "-e", event])
            .arg(&session);
        let samples = printed(&mut varid)?;
        std::fs::write(folder.path().join(format!("{event}.jsonl")), samples)?;
    }
    let jfr = PathBuf::from(JDK).join("jfr");
    let arguments = [jfr, file, folder.path().to_owned(), start.into()];
    let (is_equal, counts, differences) = oracle("flight_recording.py", arguments)?;
    println!("java_recordings: {counts}");
    ensure!(is_equal, "{differences}");
    for event in [
        "jdk.JavaMonitorEnter",
        "jdk.ThreadPark",
        "jdk.ObjectAllocationInNewTLAB",
    ] {
        ensure!(counts[event].as_u64() > Some(100), "{event}: {counts}");
    }
    Ok(())
}
