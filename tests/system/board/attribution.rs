//! Tests that every sample on the ARM board is attributed to the correct method and bytecode.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use varid_tests::{App, Board, Release, Scale, board, scale};

/// Judges a run of each app, which must have no wrong sample. The number is the minimum percentage of samples whose
/// bytecode is known. Returns the oracle's counts of each.
fn all_apps(apps: &[(App, u64)], options: &str) -> Result<Option<Vec<Value>>> {
    let Some(board) = board("attribution")? else {
        return Ok(None);
    };
    let counts = apps.iter().map(|(app, known)| {
        board.record_there(app, options)?;
        let counts = board
            .judge_art(Board::SESSION, app)
            .with_context(|| format!("{} with {options}", app.name))?;
        println!("{} with {options}: {counts}", app.name);
        ensure!(
            of(&counts, "bytecode known") * 100 > of(&counts, "samples") * known,
            "{counts}"
        );
        Ok(counts)
    });
    let counts = counts.collect::<Result<Vec<_>>>()?;
    // In a third of a handler's instructions, the pc register is ahead. These samples are counted separately.
    let ahead = sum(&counts, "in a handler, at the next instruction");
    ensure!(ahead > 100, "{ahead}");
    Ok(Some(counts))
}

fn of(counts: &Value, what: &str) -> u64 {
    counts[what].as_u64().unwrap_or(0)
}

fn sum(counts: &[Value], what: &str) -> u64 {
    counts.iter().map(|counts| of(counts, what)).sum()
}

#[test]
fn every_sample_of_hardware_cycles_is_what_the_registers_say() -> Result<()> {
    let apps = [
        (App::new("math", "run", 2)?, 60),
        (App::new("truth", "run", 14)?, 30),
        (App::new("scene", "run", 8)?, 5),
        (App::new("cradle", "run", 40)?, 1),
    ];
    let apps = match scale() {
        Scale::Gate => &apps[1..2],
        Scale::Long => &apps[..],
    };
    all_apps(apps, "-e cycles -F 997 --shim bpf").map(|_| ())
}

/// nterp has native frames with their method at the stack pointer. Loading the program that walks them takes a second
/// on a board, so the runs are longer.
#[test]
fn every_sample_of_hardware_cycles_in_nterp_is_what_the_registers_say() -> Result<()> {
    let apps = [
        (App::new("math", "run", 4)?, 60),
        (App::new("truth", "run", 60)?, 40),
        (App::new("scene", "run", 30)?, 5),
    ]
    .map(|(app, known)| (app.in_release(Release::Art14), known));
    let (apps, enough) = match scale() {
        Scale::Gate => (&apps[1..2], 2000),
        Scale::Long => (&apps[..], 4000),
    };
    let Some(counts) = all_apps(apps, "-e cycles -F 997 --shim bpf")? else {
        return Ok(());
    };
    let [found, truncated, incomplete] =
        ["VM found", "VM found, truncated", "VM found, incomplete"].map(|what| sum(&counts, what));
    println!(
        "{found} samples after ART 14 was found: {truncated} of deeper stacks than are copied, {incomplete} lack other frames"
    );
    ensure!(found > enough, "{counts:?}");
    // truth recurses and throws at depths beyond the copy of its stack.
    ensure!(truncated * 20 < found, "{counts:?}");
    ensure!(incomplete * 200 < found, "{counts:?}");
    ensure!(sum(&counts, "nterp window") > 100, "{counts:?}");
    let missing = sum(&counts, "nterp window, method missing");
    ensure!(missing * 500 < found, "{counts:?}");
    Ok(())
}

/// The shadow interpreter, whose methods are native functions, under a 64-bit kernel.
#[test]
fn every_sample_of_a_32_bit_process_is_the_method_that_ran() -> Result<()> {
    let Some(board) = board("attribution")? else {
        return Ok(());
    };
    let counts = board.judge_shadow("shadowvm32", "-e cycles -F 251 --shim bpf")?;
    println!("a 32-bit process: {counts}");
    ensure!(
        of(&counts, "method known") * 10 > of(&counts, "samples") * 9,
        "{counts}"
    );
    Ok(())
}
