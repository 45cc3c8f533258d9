//! Tests that `varid report --by dim` is correct for each sampled frame.

use anyhow::{Result, ensure};
use std::path::Path;
use varid_tests::{App, judge, printed, record, skip_without_root, testbed};

/// Records an app, and compares the report, sample by sample, with perf, dexdump, the kernel's registers and
/// /proc/PID/maps. Returns the counts.
fn judged(name: &'static str, rounds: u32) -> Result<serde_json::Value> {
    let app = App::new(name, "run", rounds)?;
    let recording = record(&app, &["-F", "997", "--shim", "bpf", "--keep-raw"])?;
    let report = recording.session().join("dim.json");
    let mut varid = testbed()?.varid();
    let shown = ["report", "--by", "dim", "--format", "json", "-i"];
    std::fs::write(
        &report,
        printed(varid.args(shown).arg(recording.session()))?,
    )?;
    let uid = nix::unistd::geteuid().to_string();
    judge(
        "dim.py",
        [
            &recording.session(),
            &recording.maps(),
            &report,
            Path::new(&uid),
            &app.dex(),
            &testbed()?.boot_dex(),
        ],
    )
}

#[test]
fn each_row_is_what_its_samples_say() -> Result<()> {
    if skip_without_root("dim") {
        return Ok(());
    }
    // Bytecode, many threads and deep stacks, and native methods.
    for (name, rounds) in [("math", 40), ("truth", 300), ("scene", 400)] {
        let counts = judged(name, rounds)?;
        println!("{name}: {counts}");
        // On a machine that is three times faster, a third of these are seen: about 500, 80 and 70.
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        ensure!(of("samples") > 200, "{name}: {counts}");
        ensure!(of("managed rows") > 30, "{name}: {counts}");
        ensure!(of("frame pointer known") > 20, "{name}: {counts}");
        ensure!(
            name != "scene" || of("native methods") > 100,
            "{name}: {counts}"
        );
    }
    Ok(())
}
