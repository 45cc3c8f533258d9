//! Compiles the C programs of the tests.

use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;

/// Compiles the program `name` of `system/host` to `folder/name`.
pub fn compile(name: &str, folder: &Path) -> Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/host");
    let cc = Command::new("cc")
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg(sources.join(name).with_extension("c"))
        .arg("-o")
        .arg(folder.join(name))
        .status()?;
    ensure!(cc.success(), "cc: {cc}");
    Ok(())
}
