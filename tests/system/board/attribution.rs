//! Is every sample on the ARM board attributed to the method and bytecode that ran?

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use varid_tests::{App, Board, Libart, Says, board};

/// Debian's library there.
const LIBART: &str = "/usr/lib/aarch64-linux-gnu/android/libart.so.0";

/// Each app once: none wrong, and the share of samples whose bytecode is known beyond doubt is what its work lets expect.
fn all_apps(options: &str) -> Result<()> {
    let Some(board) = board("board_attribution")? else {
        return Ok(());
    };
    let mut ahead = 0;
    for (name, rounds, known) in [
        ("math", 3, 60),
        ("truth", 20, 30),
        ("cradle", 60, 1),
        ("scene", 12, 5),
    ] {
        let app = App::new(name, "run", rounds)?;
        board.record_there(&app, options)?;
        let counts = board
            .judge_art(Board::SESSION, &app)
            .with_context(|| format!("{name} with {options}"))?;
        println!("{name} with {options}: {counts}");
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        ensure!(
            of("bytecode known") * 100 > of("samples") * known,
            "{counts}"
        );
        ahead += of("in a handler, at the next instruction");
    }
    // In a third of a handler's instructions its register is ahead: those are told apart, too.
    ensure!(ahead > 100, "{ahead}");
    Ok(())
}

#[test]
fn every_sample_of_hardware_cycles_is_what_the_registers_say() -> Result<()> {
    all_apps("-e cycles -F 997 --shim bpf")
}

#[test]
fn stacks_on_arm64_are_unwound_as_perf_unwinds_them_or_better() -> Result<()> {
    let Some(board) = board("board_attribution")? else {
        return Ok(());
    };
    // Nothing is known of this one's frames: what is recorded is the native stack through the interpreter.
    let folder = tempfile::tempdir()?;
    let debian = folder.path().join("libart.so.0");
    board.pull(LIBART, &debian)?;
    let libart = Libart::unknown_of(&debian, Says::Nothing)?;
    board.push([libart.directory()], "/data/local/tmp")?;
    let mut sum = BTreeMap::new();
    for (name, rounds) in [("truth", 20), ("cradle", 30)] {
        let app = App::new(name, "run", rounds)?
            .option("--any-build")
            .option("--libart")
            .option("/data/local/tmp/android/libart.so.0");
        board.record_there(&app, "-e cycles:u -F 199 --shim bpf --stack full")?;
        let counted = board.judge("unwinding.py", [Board::SESSION, Board::MAPS])?;
        println!("{name}: {counted}");
        for (what, count) in counted.as_object().context("no JSON object")? {
            *sum.entry(what.clone()).or_default() += count.as_u64().context("no count")?;
        }
    }
    println!("unwinding on arm64: {sum:?}");
    let of = |name: &str| sum.get(name).copied().unwrap_or(0);
    ensure!(of("samples") > 200, "{sum:?}");
    // Of two or three in a hundred the machine code says that no chain can be: varid and perf follow the same unwind information. Of
    // some 370 samples that is ten, and by chance never a tenth.
    ensure!(of("equal and right") * 10 > of("samples") * 9, "{sum:?}");
    ensure!(of("unpaired") * 20 < of("samples"), "{sum:?}");
    Ok(())
}

/// Under a 64-bit kernel: the shadow interpreter, whose methods are native functions.
#[test]
fn every_sample_of_a_32_bit_process_is_the_method_that_ran() -> Result<()> {
    let Some(board) = board("board_attribution")? else {
        return Ok(());
    };
    let counts = board.judge_shadow("shadowvm32", "-e cycles -F 251 --shim bpf")?;
    println!("a 32-bit process: {counts}");
    let of = |what: &str| counts[what].as_u64().unwrap_or(0);
    ensure!(of("method known") * 10 > of("samples") * 9, "{counts}");
    Ok(())
}
