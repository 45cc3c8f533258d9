//! Tests that varid profiles an app on an ARM board with hardware events, and that all readers agree.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use varid_tests::{
    App, Board, PERF_REPORT, board, has_all_of_math, methods_by_perf, methods_in, printed_by_perf,
    report_by_symbol,
};

#[test]
fn hardware_cycles_on_the_board_are_reported_here_and_read_alike_by_perf_on_both() -> Result<()> {
    let Some(board) = board("board")? else {
        return Ok(());
    };
    let recording = board.record(&App::new("math", "run", 2)?, &["-e", "cycles"])?;
    let counts = recording.counts()?;
    println!("board: {counts}");
    ensure!(counts["lost"] == 0, "{counts}");
    // perf looks for files at their recorded paths, below a copy of the board's root.
    let root = tempfile::tempdir()?;
    let session = root.path().join(Board::SESSION.trim_start_matches('/'));
    std::fs::create_dir_all(session.parent().context("no folder")?)?;
    recording.move_session(&session)?;

    let report = report_by_symbol(&session)?;
    let methods = methods_in(&report)?;
    has_all_of_math(&report)?;
    kernel_functions_are_the_board_s(&board, &report)?;

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
fn recording_makes_no_system_call_that_would_be_refused() -> Result<()> {
    let Some(board) = board("board")? else {
        return Ok(());
    };
    let actions = board.check("cat /proc/sys/kernel/seccomp/actions_logged")?;
    ensure!(actions.split_whitespace().any(|action| action == "log"));
    let app = App::new("math", "run", 1)?;
    let programs = std::path::Path::new(Board::PROGRAMS);
    let app = app.arguments_in(programs, programs).join(" ");
    let session = Board::SESSION;
    let varid = format!("VARID_SANDBOX=log {}/varid", Board::PROGRAMS);
    for options in ["-e cycles", "--stack full", "--shim perf"] {
        board.check(&format!(
            "rm -rf {session}; {varid} record {options} -o {session} -- {app}"
        ))?;
    }
    board.check(&format!(
        "rm -rf {session}; {varid} start --app org.example.math -o {session} && {app} && {varid} stop"
    ))?;
    let log = board.check("dmesg")?;
    ensure!(log.contains("audit: "), "the kernel logs no system calls");
    let refused = log
        .lines()
        .find(|line| line.contains("type=1326") && line.contains("varid"));
    ensure!(refused.is_none(), "{refused:?}");
    Ok(())
}

/// The board's kernel is a common release, older than the host's. If it rejects a program, the replacement walks fewer
/// frames and takes ten times as long to load.
#[test]
fn the_boards_kernel_takes_the_programs_that_loop_by_its_helper() -> Result<()> {
    let Some(board) = board("programs")? else {
        return Ok(());
    };
    let varid = format!("{}/varid", Board::PROGRAMS);
    for options in ["", "--off-cpu", "-e sched:sched_switch"] {
        let printed = board.check(&format!(
            "cd /tmp; rm -rf programs; {varid} -vv record --shim bpf {options} -o programs -- /bin/busybox true 2>&1; rm -rf programs"
        ))?;
        let is_loaded = printed.contains("loaded program=");
        let is_replaced = printed.contains("_no_loop") || printed.contains("refuses this variant");
        ensure!(is_loaded && !is_replaced, "{options}: {printed}");
    }
    Ok(())
}

/// Checks that the report has samples in the kernel, with the function names of the board's kernel.
fn kernel_functions_are_the_board_s(board: &Board, report: &Value) -> Result<()> {
    let symbols = board.check("cat /proc/kallsyms")?;
    let symbols: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    let mut samples = 0;
    let rows = report["rows"].as_array().context("no rows")?;
    for row in rows.iter().filter(|row| row["layer"] == "kernel") {
        let symbol = row["symbol"].as_str().context("a function without name")?;
        ensure!(symbols.contains(symbol), "{row}");
        samples += row["self"].as_u64().context("no self")?;
    }
    ensure!(samples > 10, "{samples} samples in the kernel");
    Ok(())
}
