//! Is every sample on the ARM board attributed to the method and bytecode that ran?

use anyhow::{Context, Result, ensure};
use varid_tests::{App, Board, board};

/// Each app once: none wrong, and the share of samples whose bytecode is known beyond doubt is what its work lets expect.
fn all_apps(options: &str) -> Result<()> {
    let Some(board) = board("attribution")? else {
        return Ok(());
    };
    let mut ahead = 0;
    for (name, rounds, known) in [
        ("math", 2, 60),
        ("truth", 14, 30),
        ("cradle", 40, 1),
        ("scene", 8, 5),
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

/// Under a 64-bit kernel: the shadow interpreter, whose methods are native functions.
#[test]
fn every_sample_of_a_32_bit_process_is_the_method_that_ran() -> Result<()> {
    let Some(board) = board("attribution")? else {
        return Ok(());
    };
    let counts = board.judge_shadow("shadowvm32", "-e cycles -F 251 --shim bpf")?;
    println!("a 32-bit process: {counts}");
    let of = |what: &str| counts[what].as_u64().unwrap_or(0);
    ensure!(of("method known") * 10 > of("samples") * 9, "{counts}");
    Ok(())
}
