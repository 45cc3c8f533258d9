//! Tests that ART 14 runs on an ARM board as on this machine.

use anyhow::{Result, ensure};
use std::path::Path;
use varid_tests::{App, Board, Release, board};

#[test]
fn art_14_returns_on_the_board_what_the_models_say() -> Result<()> {
    let Some(board) = board("art14")? else {
        return Ok(());
    };
    let programs = Path::new(Board::PROGRAMS);
    for options in [&[][..], &["--int"]] {
        for (name, method, rounds) in [
            ("math", "run", 1),
            ("scene", "run", 8),
            ("cradle", "run", 30),
            ("truth", "run", 2),
            ("truth", "threads", 1),
        ] {
            let app = App::new(name, method, rounds)?.in_release(Release::Art14);
            let app = app.options(options);
            let command = app.arguments_in(programs, programs).join(" ");
            let printed = board.check(&command)?;
            ensure!(printed == app.expected()?, "{command}: {printed}");
        }
    }
    Ok(())
}
