//! Tests that the kernel module on a 32-bit board does what BPF does elsewhere. That kernel accepts none of varid's BPF
//! programs.

use anyhow::{Context, Result, ensure};
use varid_tests::{App, Board, Processor, board_with_module};

const TEST: &str = "armv7";

/// Checks that the module delivered the samples of the last session.
fn is_of_the_module(board: &Board) -> Result<()> {
    let manifest = board.manifest(Board::SESSION)?;
    ensure!(manifest["source"] == "module", "{manifest}");
    Ok(())
}

/// Each app runs once without wrong samples, and the share of samples with known bytecode matches the app's work.
#[test]
fn every_sample_of_the_dex_vm_is_what_the_registers_say() -> Result<()> {
    let Some(board) = board_with_module(Processor::Armhf, TEST)? else {
        return Ok(());
    };
    board.check(&format!("insmod {}/varid.ko", Board::PROGRAMS))?;
    let mut ahead = 0;
    // Of cradle's 1,200 samples, 20 to 30 have known bytecode.
    for (name, rounds, known) in [("math", 1, 50), ("truth", 10, 25), ("cradle", 30, 0)] {
        let app = App::new(name, "run", rounds)?;
        board.record_there(&app, "-e cycles -F 997")?;
        is_of_the_module(&board)?;
        let counts = board
            .judge_art(Board::SESSION, &app)
            .with_context(|| name.to_owned())?;
        println!("{TEST}: {name}: {counts}");
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        ensure!(
            of("bytecode known") * 100 > of("samples") * known,
            "{counts}"
        );
        ahead += of("in a handler, at the next instruction");
    }
    ensure!(ahead > 100, "{ahead}");
    board.check("rmmod varid")?;
    board.kernel_is_content()
}

/// In the shadow interpreter every method is a native function, so the symbol at the ip is the ground truth.
#[test]
fn every_sample_of_the_shadow_interpreter_is_the_method_that_ran() -> Result<()> {
    let Some(board) = board_with_module(Processor::Armhf, TEST)? else {
        return Ok(());
    };
    board.check(&format!("insmod {}/varid.ko", Board::PROGRAMS))?;
    let counts = board.judge_shadow("shadowvm", "-e cycles -F 211")?;
    is_of_the_module(&board)?;
    println!("{TEST}: shadow: {counts}");
    board.check("rmmod varid")?;
    board.kernel_is_content()
}
