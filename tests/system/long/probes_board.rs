//! Tests off-CPU time and probes on the board. Its kernel has kprobes, which the host's may lack, and an older
//! verifier. The ground truth is the app's own sleep times and number of calls, and the kernel's count of a process's
//! writes.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use varid_tests::{App, Board, Recording, board, manifest, report_by_symbol, report_with, row_of};

const ROUNDS: u32 = 10;

#[test]
fn threads_on_the_board_wait_in_their_methods() -> Result<()> {
    let Some(board) = board("waits")? else {
        return Ok(());
    };
    let app = App::new("waits", "waits", ROUNDS)?;
    let recording = walked(&board, &app, &["--off-cpu", "--stack", "full"])?;
    let by_waits = ["-e", "off-cpu", "--by", "symbol"];
    let report = report_with(&recording.session(), &by_waits)?;
    for (method, sleeps) in [("Naps.nap20", 20), ("Door.nap60", 60)] {
        let method = format!("org.example.waits.{method}");
        let expected = u64::from(ROUNDS) * sleeps;
        let waited = of(&report, &method, "total_period")? / 1_000_000;
        println!("{method} waited {waited} ms on the board");
        // A turn may be late on a busy machine.
        ensure!(
            (expected..=expected + expected / 4).contains(&waited),
            "{report}"
        );
    }
    Ok(())
}

#[test]
fn a_tracepoint_on_the_board_is_hit_where_methods_wait() -> Result<()> {
    let Some(board) = board("tracepoint")? else {
        return Ok(());
    };
    let app = App::new("waits", "waits", ROUNDS)?;
    let recording = walked(&board, &app, &["-e", "sched:sched_switch"])?;
    let naps = total(
        &report_by_symbol(&recording.session())?,
        "org.example.waits.Naps.nap20",
    )?;
    println!("tracepoint on the board: {naps} switches below nap20");
    ensure!(naps >= u64::from(ROUNDS), "{naps}");
    Ok(())
}

#[test]
fn a_uprobe_on_the_board_has_the_methods_that_called() -> Result<()> {
    let Some(board) = board("uprobe")? else {
        return Ok(());
    };
    const PROBED: &str = "Java_org_example_waits_Native_sleep";
    let app = App::new("waits", "waits", ROUNDS)?;
    let event = format!("uprobe:{}/libwaits.so:{PROBED}", Board::PROGRAMS);
    let recording = walked(&board, &app, &["-e", &event])?;
    let report = report_by_symbol(&recording.session())?;
    let hits = manifest(&recording.session())?["counts"]["samples"].clone();
    let hits = hits.as_u64().context("samples")?;
    let naps = total(&report, "org.example.waits.Naps.nap20")?;
    println!("uprobe on the board: {hits} hits, {naps} of them below nap20");
    // The first hits may precede the detection of the VM.
    let rounds = u64::from(ROUNDS);
    ensure!(
        hits >= 2 * rounds && (rounds - 1..=rounds).contains(&naps),
        "{report}"
    );
    Ok(())
}

#[test]
fn a_kprobe_on_the_board_is_hit_by_each_write() -> Result<()> {
    let Some(board) = board("kprobe")? else {
        return Ok(());
    };
    let (programs, session) = (Board::PROGRAMS, Board::SESSION);
    // The shell's counts include its children that have ended.
    let work = "dd if=/dev/zero of=/dev/null bs=1 count=500 2> /dev/null; cat /proc/$$/io";
    let said = board.check(&format!(
        "rm -rf {session}
        {programs}/varid record -e kprobe:vfs_write -o {session} -- /bin/busybox sh -c '{work}'"
    ))?;
    let writes = said
        .lines()
        .find_map(|line| line.strip_prefix("syscw: "))
        .with_context(|| format!("no count of writes: {said}"))?;
    let writes: u64 = writes.trim().parse()?;
    ensure!(writes >= 500, "{said}");
    board.manifest(session)?;
    let folder = tempfile::tempdir()?;
    let here = folder.path().join("session");
    board.pull(session, &here)?;
    let report = report_by_symbol(&here)?;
    let hits = total(&report, "vfs_write")?;
    println!("kprobe on the board: {hits} hits, {writes} writes before the last");
    // Printing the count is a write, too.
    ensure!(
        (writes..=writes + 4).contains(&hits),
        "{hits} hits of {writes} writes: {report}"
    );
    Ok(())
}

/// Records an app. The kernel must be able to walk its frames.
fn walked(board: &Board, app: &App, options: &[&str]) -> Result<Recording> {
    let recording = board.record(app, options)?;
    let said = recording.stderr();
    ensure!(!said.contains("not walked"), "{said}");
    Ok(recording)
}

/// Returns the number of samples with this function in their stacks.
fn total(report: &Value, symbol: &str) -> Result<u64> {
    of(report, symbol, "total")
}

/// Returns a number of a function's row.
fn of(report: &Value, symbol: &str, what: &str) -> Result<u64> {
    let number = &row_of(report, symbol)?[what];
    number.as_u64().with_context(|| what.to_owned())
}
