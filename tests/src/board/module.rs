//! Builds the kernel module for a board, and the programs of `board/module` that use it.

use super::made::{Making, made_by, made_once, script, succeeded};
use super::{Board, Processor, board_of};
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{MutexGuard, OnceLock};

/// Patterns of errors in the kernel's log, for all processors.
const COMPLAINTS: &str = "BUG|WARNING|Oops|Internal error|Call [Tt]race|Backtrace|Unable to handle|scheduling while\
    |detected.* stall|blocked for more than";

/// Programs that use the module without varid.
const USERS: [&str; 3] = ["fuzz", "session", "tunnel"];

/// Returns a board with the module's file, which is not loaded, and its test programs in [`Board::PROGRAMS`]. None if
/// the test is skipped; the reason is printed.
pub fn board_with_module(
    processor: Processor,
    test: &str,
) -> Result<Option<MutexGuard<'static, Board>>> {
    static ARM64: OnceLock<Making<()>> = OnceLock::new();
    static ARMHF: OnceLock<Making<()>> = OnceLock::new();
    let Some(board) = board_of(processor, test)? else {
        return Ok(None);
    };
    let pushed = match processor {
        Processor::Arm64 => &ARM64,
        Processor::Armhf => &ARMHF,
    };
    if made_once(pushed, test, || push(&board))?.is_none() {
        return Ok(None);
    }
    // A failed test may have left the module loaded. Its messages while it is unloaded belong to this test.
    let loaded = "[ -e /sys/module/varid ]";
    board.check(&format!(
        "dmesg -c >/dev/null; if {loaded}; then rmmod varid; ! {loaded}; fi"
    ))?;
    Ok(Some(board))
}

impl Board {
    /// Checks that the kernel has logged no error since the test began.
    pub fn kernel_is_content(&self) -> Result<()> {
        // grep's status 1 is the expected one. Status 2 means that grep itself failed.
        let complaints = self.check(&format!(
            "dmesg >/tmp/log && {{ grep -E '{COMPLAINTS}' /tmp/log || [ $? -eq 1 ]; }}"
        ))?;
        ensure!(complaints.is_empty(), "{complaints}");
        Ok(())
    }
}

/// Builds all files and pushes them, or returns what is missing here.
fn push(board: &Board) -> Result<std::result::Result<(), String>> {
    let testbed = testbed()?;
    let target = testbed.release.parent().context("no target folder")?;
    let release = board.check("uname -r")?;
    let folder = target.join("board/module").join(board.processor.name());
    let mut build = script("module.sh", target);
    build.args([board.processor.name(), release.trim()]);
    if let Err(lacking) = made_by(build.arg(&folder))? {
        return Ok(Err(lacking));
    }
    let mut files = vec![folder.join("varid.ko"), source("soak.sh")];
    for program in USERS {
        files.push(compiled(program, board.processor, &folder)?);
    }
    board.push(files, Board::PROGRAMS).map(Ok)
}

/// Returns a file of `board/module`.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("board/module")
        .join(name)
}

/// Compiles a program of `board/module` for the board.
fn compiled(name: &str, processor: Processor, folder: &Path) -> Result<PathBuf> {
    let program = folder.join(name);
    let mut compile = Command::new(format!("{}-gcc", processor.triplet()));
    compile.args(["-O1", "-Wall", "-Wextra", "-Werror", "-static"]);
    for include in ["../kmod-shim/include", "../dvm-patch/include"] {
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join(include);
        compile.arg("-I").arg(include);
    }
    compile.arg("-o").arg(&program);
    compile.arg(source(&format!("{name}.c")));
    let output = compile.output()?;
    succeeded(&compile, output)?;
    Ok(program)
}
