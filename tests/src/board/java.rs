//! Debian's JVM on the 64-bit board, and sessions of the Java workloads.

use super::made::{Making, made_by, made_once, script};
use super::{Board, Processor, board_of};
use crate::command::printed;
use crate::java::{JAVA_PACKAGE, JDK, base_classes, has_jdk, java_classes};
use crate::oracle::judge_in;
use crate::testbed::{skipped, testbed};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{MutexGuard, OnceLock};

/// The folder on the board with the JVM.
const JAVA: &str = "/data/local/tmp/java";
/// The folder on the board with the workloads' classes.
const CLASSES: &str = "/data/local/tmp/classes";

/// Returns the 64-bit board with a JVM. None if the test is skipped; the reason is printed.
pub fn board_with_java(test: &str) -> Result<Option<MutexGuard<'static, Board>>> {
    static PUSHED: OnceLock<Making<()>> = OnceLock::new();
    if !has_jdk() {
        skipped(test, "there is no openjdk-17-jdk-headless");
        return Ok(None);
    }
    let Some(board) = board_of(Processor::Arm64, test)? else {
        return Ok(None);
    };
    let pushed = made_once(&PUSHED, test, || push(&board))?;
    Ok(pushed.map(|()| board))
}

/// Returns the folder here with the board's JVM.
fn jvm() -> Result<PathBuf> {
    let target = testbed()?.release.parent().context("no target folder")?;
    Ok(target.join("board/java"))
}

/// Pushes the JVM and the workloads, or returns what is missing here.
fn push(board: &Board) -> Result<std::result::Result<(), String>> {
    let jvm = jvm()?;
    let target = testbed()?.release.parent().context("no target folder")?;
    if let Err(lacking) = made_by(script("java.sh", target).arg(&jvm))? {
        return Ok(Err(lacking));
    }
    board.push([&jvm], JAVA)?;
    board.push([java_classes()?], CLASSES)?;
    Ok(Ok(()))
}

impl Board {
    /// Records the workload `Truth` until it ends, executed as an option of the VM says, and judges the session: no sample may be wrong. The workload's result
    /// must be correct.
    pub fn judge_java(&self, vm_option: &str, rounds: u32, options: &str) -> Result<Value> {
        let session = Self::SESSION;
        let arguments = format!("{JAVA_PACKAGE}.Truth {rounds}");
        let printed_there = self.check(&format!(
            "rm -rf {session}; {}/varid record {options} -o {session} -- {JAVA}/bin/java {vm_option} -Xmx64m -cp {CLASSES} {arguments}",
            Self::PROGRAMS
        ))?;
        let mut java = Command::new(format!("{JDK}/java"));
        java.arg("-cp").arg(java_classes()?);
        let expected = printed(java.args(arguments.split(' ')))?;
        ensure!(printed_there == expected, "it printed {printed_there:?}");
        self.manifest(session)?;
        let copy = tempfile::tempdir()?;
        self.pull(session, copy.path())?;
        let copy = copy.path().join("session").display().to_string();
        let classes = java_classes()?.display().to_string();
        let (server, socket) = self.environment();
        let environment = [
            (server, socket.to_owned()),
            ("ADB", format!("adb -s {}", self.serial())),
            ("JAVA_BASE", base_classes(&jvm()?)?.display().to_string()),
        ];
        judge_in(
            environment,
            "java.py",
            [session, &classes, JAVA_PACKAGE, &copy],
        )
    }
}
