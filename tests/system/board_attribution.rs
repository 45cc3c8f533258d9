//! Is every sample on the ARM board attributed to the method and bytecode that ran?

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use varid_tests::{App, Board, board, judge_in, testbed};

/// Debian's library there.
const LIBART: &str = "/usr/lib/aarch64-linux-gnu/android/libart.so.0";
/// A copy of the app's /proc/PID/maps, on the board.
const MAPS: &str = "/data/local/tmp/maps";

/// Records an app on the board, while its mappings are read as any other process could. What varid said.
fn record(board: &Board, app: &App, options: &str) -> Result<()> {
    let (programs, session) = (Path::new(Board::PROGRAMS), Board::SESSION);
    let arguments = app.arguments_in(programs, programs).join(" ");
    // Loaded last: the library, where the app has one, else the dex file.
    let last = match app.library() {
        Some(_) => format!("lib{}.so", app.name),
        None => format!("{}.dex", app.name),
    };
    let output = board.check(&format!(
        "rm -rf {session} {MAPS}
        {varid}/varid record {options} --keep-raw -o {session} -- {arguments} &
        while kill -0 $! && ! [ -s {MAPS} ]; do
            for app in $(cat /proc/$!/task/$!/children); do
                grep -q /{last} /proc/$app/maps && cat /proc/$app/maps > {MAPS}
            done
        done 2> /dev/null
        wait $!",
        varid = Board::PROGRAMS,
    ))?;
    ensure!(output == app.expected()?, "the app printed {output:?}");
    Ok(())
}

/// Judges the session on the board by the registers that the kernel recorded; the board's perf reads both.
fn judged(board: &Board, app: &App) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let (maps, libart) = (
        folder.path().join("maps"),
        folder.path().join("libart.so.0"),
    );
    board.pull(MAPS, &maps)?;
    board.pull(LIBART, &libart)?;
    let (name, server) = board.environment();
    judge_in(
        [
            (name, server.to_owned()),
            ("PERF", format!("adb -s {} shell perf", board.serial())),
            ("LIBART", libart.display().to_string()),
        ],
        "per_sample.py",
        [
            Board::SESSION.into(),
            maps,
            app.dex(),
            testbed()?.boot_dex(),
        ],
    )
}

/// Each app once: none wrong, and the share of samples whose bytecode is known beyond doubt is what its work lets expect.
fn all_apps(options: &str) -> Result<()> {
    let Some(board) = board("board_attribution")? else {
        return Ok(());
    };
    for (name, rounds, known) in [("math", 3, 60), ("truth", 20, 30), ("cradle", 60, 3)] {
        let app = App::new(name, "run", rounds)?;
        record(&board, &app, options)?;
        let counts = judged(&board, &app).with_context(|| format!("{name} with {options}"))?;
        println!("{name} with {options}: {counts}");
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        ensure!(of("samples") > 500 && of("wrong") == 0, "{counts}");
        ensure!(
            of("bytecode known") * 100 > of("samples") * known,
            "{counts}"
        );
        // In a third of a handler's instructions its register is ahead: those are told apart, too.
        ensure!(of("in a handler, at the next instruction") > 2, "{counts}");
        ensure!(of("unresolved") * 100 < of("samples"), "{counts}");
    }
    Ok(())
}

#[test]
fn every_sample_of_hardware_cycles_is_what_the_registers_say() -> Result<()> {
    all_apps("-e cycles -F 997 --shim bpf")
}
