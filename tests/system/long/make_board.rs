//! Tests that `make board` shows the profile of an app on a board that it boots itself.

use anyhow::{Context, Result, ensure};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use varid_tests::{MATH, board, testbed};

#[test]
fn make_board_shows_the_app_s_profile_and_leaves_nothing_running() -> Result<()> {
    let home = tempfile::tempdir()?;
    // It boots the same board as the other tests, if that can be made.
    if board("make board")?.is_none() {
        return Ok(());
    }
    let target = testbed()?.release.parent().context("no target folder")?;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script = Command::new(root.join("scripts/board.sh"))
        .arg(target)
        .env("VARID_HOME", home.path())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let group = script.id();
    let output = script.wait_with_output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for kernel in MATH {
        ensure!(
            printed.contains(&format!("org.example.math.{kernel}.")),
            "{printed}"
        );
    }
    for process in std::fs::read_dir("/proc")?.flatten() {
        // The process may have ended meanwhile.
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let mut behind_the_name = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        ensure!(
            behind_the_name.nth(2) != Some(&group.to_string()),
            "it left {stat}"
        );
    }
    let sockets = std::fs::read_to_string("/proc/net/unix")?;
    ensure!(
        !sockets.contains(&format!("varid-board-demo-{group}")),
        "it left an adb server"
    );
    Ok(())
}
