//! Does varid profile an app on an ARM board with hardware events, and does every reader see the same?

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use varid_tests::{
    App, Board, Methods, PERF_REPORT, Processor, board, methods_by_perf, methods_by_varid,
    printed_by_perf, run_on_board, testbed,
};

/// Where the work is done: SciMark's kernels and Linpack's.
const KERNELS: [&str; 6] = ["FFT", "LU", "Linpack", "MonteCarlo", "SOR", "SparseCompRow"];

#[test]
fn hardware_cycles_on_the_board_are_reported_here_and_read_alike_by_perf_on_both() -> Result<()> {
    let Some(board) = board("board")? else {
        return Ok(());
    };
    let recording = board.record(&App::new("math", "run", 2)?, &["-e", "cycles"])?;
    let counts = recording.counts()?;
    println!("board: {counts}");
    ensure!(counts["lost"] == 0, "{counts}");
    // perf looks for files where they were: below a copy of the board's root.
    let root = tempfile::tempdir()?;
    let session = root.path().join(Board::SESSION.trim_start_matches('/'));
    std::fs::create_dir_all(session.parent().context("no folder")?)?;
    std::fs::rename(recording.session(), &session)?;

    let methods = methods_by_varid(&session)?;
    for kernel in KERNELS {
        let samples = samples_of(&methods, &format!("org.example.math.{kernel}."));
        ensure!(samples > 10, "{samples} samples in {kernel}: {methods:?}");
    }
    kernel_functions_are_the_board_s(&board, &session)?;

    let symfs = root.path().display().to_string();
    let here = methods_by_perf(&session.join("perf.data"), &["--symfs", &symfs])?;
    ensure!(here == methods, "perf {here:?}\nvarid {methods:?}");
    let arguments = PERF_REPORT.map(|word| format!("'{word}'")).join(" ");
    let there = board.check(&format!("perf {arguments} {}/perf.data", Board::SESSION))?;
    let there = printed_by_perf(&there)?;
    ensure!(there == methods, "perf there {there:?}\nvarid {methods:?}");
    Ok(())
}

#[test]
fn two_runs_on_the_board_are_alike_to_the_nanosecond_while_varid_records() -> Result<()> {
    // What the kernel says of the time, of random numbers and of addresses, and the recording itself, which has all three.
    let script = "#!/bin/sh
set -e
./varid record -e cycles -o /tmp/session -- ./artvm --timed 2 --dex math.dex --name org.example.math \
    org.example.math.Main run 1 2>&1
sha1sum /tmp/session/perf.data
cat /proc/sys/kernel/random/uuid
grep '^now at' /proc/timer_list
";
    let Some(consoles) = run_on_board(Processor::Arm64, "two runs", script, 2)? else {
        return Ok(());
    };
    println!("{}", consoles[0]);
    ensure!(consoles[0] == consoles[1], "{consoles:?}");
    ensure!(consoles[0].contains("samples in /tmp/session"));
    Ok(())
}

fn samples_of(methods: &Methods, class: &str) -> u64 {
    let all = methods.iter();
    let of_class = all.filter(|(method, _)| method.starts_with(class));
    of_class.map(|(_, samples)| samples).sum()
}

/// The report has samples in the kernel, and calls its functions as the board's kernel does.
fn kernel_functions_are_the_board_s(board: &Board, session: &Path) -> Result<()> {
    let mut report = testbed()?.varid();
    report
        .args(["report", "--by", "symbol", "--format", "json", "-i"])
        .arg(session);
    let output = report.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{report:?}: {said}");
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let symbols = board.check("cat /proc/kallsyms")?;
    let symbols: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    let mut samples = 0;
    for row in report["rows"].as_array().context("no rows")? {
        if row["layer"] == "kernel" {
            let symbol = row["symbol"].as_str().context("a function without name")?;
            ensure!(symbols.contains(symbol), "{row}");
            samples += row["self"].as_u64().context("no self")?;
        }
    }
    ensure!(samples > 10, "{samples} samples in the kernel");
    Ok(())
}
