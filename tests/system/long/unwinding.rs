//! Tests unwinding of native stacks on the ARM board.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use varid_tests::{App, Board, Libart, Says, board};

/// Debian's library for the board.
const LIBART: &str = "/usr/lib/aarch64-linux-gnu/android/libart.so.0";

#[test]
fn stacks_on_arm64_are_unwound_as_perf_unwinds_them_or_better() -> Result<()> {
    let Some(board) = board("unwinding")? else {
        return Ok(());
    };
    // The frames of this build are unknown, so the recording has the native stack through the interpreter.
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
    // In two or three of a hundred samples, the chain is impossible according to the machine code: varid and perf use
    // the same unwind information. In about 370 samples that is ten, and by chance never a tenth.
    ensure!(of("equal and right") * 10 > of("samples") * 9, "{sum:?}");
    ensure!(of("unpaired") * 20 < of("samples"), "{sum:?}");
    Ok(())
}
