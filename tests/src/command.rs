//! Runs commands and returns their output.

use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Returns a command's standard output. The command must succeed.
pub fn printed(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
