//! Runs the oracles: Python programs in `oracle/` that print their counts as JSON.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs an oracle, whatever its exit status.
pub fn oracle<S: AsRef<OsStr>>(
    name: &str,
    arguments: impl IntoIterator<Item = S>,
) -> Result<(bool, Value, String)> {
    oracle_in([], name, arguments)
}

/// Like [`oracle`], with these variables in its environment.
fn oracle_in<const N: usize, S: AsRef<OsStr>>(
    environment: [(&str, String); N],
    name: &str,
    arguments: impl IntoIterator<Item = S>,
) -> Result<(bool, Value, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("oracle")
        .join(name);
    let mut command = Command::new("python3");
    command
        .arg("-B")
        .arg(&script)
        .args(arguments)
        .envs(environment);
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8_lossy(&output.stdout);
    let Ok(value) = serde_json::from_str(printed.trim()) else {
        bail!("{command:?}: {}\n{printed}\n{complaints}", output.status);
    };
    Ok((output.status.success(), value, complaints))
}

/// Runs an oracle that must report no error.
pub fn judge<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Result<Value> {
    judge_in([], name, arguments)
}

/// Like [`judge`], with these variables in its environment.
pub fn judge_in<const N: usize, S: AsRef<OsStr>>(
    environment: [(&str, String); N],
    name: &str,
    arguments: impl IntoIterator<Item = S>,
) -> Result<Value> {
    let (content, value, complaints) = oracle_in(environment, name, arguments)?;
    if !content {
        bail!("{name}: {complaints}\n{value}");
    }
    Ok(value)
}
