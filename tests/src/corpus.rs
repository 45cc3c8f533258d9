//! Dex files that tests read in addition to those of the testbed.

use crate::scale::{Scale, scale};
use crate::testbed::skipped;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Exit status of `tests/corpus/fetch.sh` if its sources are unreachable.
const UNREACHABLE: i32 = 77;

/// Returns the dex files that `tests/corpus/build.sh` assembles from code that compilers rarely write.
pub fn assembled_dex_files() -> Result<Vec<PathBuf>> {
    let (output, folder) = corpus("build.sh", "smali")?;
    ensure!(output.status.success(), "build.sh: {}", said(&output));
    dex_files(&folder)
}

/// The maximum size of a real app's dex file in the gate.
const LARGE: u64 = 2 << 20;

/// Returns the dex files of real apps, which `tests/corpus/fetch.sh` fetches once. None if it cannot; the reason is
/// printed.
pub fn fetched_dex_files() -> Result<Option<Vec<PathBuf>>> {
    let (output, folder) = corpus("fetch.sh", "apps")?;
    if output.status.code() == Some(UNREACHABLE) {
        skipped("fetched dex files", &said(&output));
        return Ok(None);
    }
    ensure!(output.status.success(), "fetch.sh: {}", said(&output));
    let mut files = dex_files(&folder)?;
    if scale() == Scale::Gate {
        files.retain(|file| std::fs::metadata(file).is_ok_and(|about| about.len() < LARGE));
    }
    Ok(Some(files))
}

/// Returns the dex files of a folder and its subfolders, sorted.
pub fn dex_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(dex_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "dex") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Runs a script of `tests/corpus` that fills a folder below the target folder.
fn corpus(script: &str, name: &str) -> Result<(Output, PathBuf)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(script);
    // The path of this program is TARGET/PROFILE/deps/NAME.
    let program = std::env::current_exe()?;
    let target = program
        .ancestors()
        .nth(3)
        .context("no target folder above this program")?;
    let folder = target.join("testbed/corpus").join(name);
    let output = Command::new(&script).arg(&folder).output();
    Ok((
        output.with_context(|| script.display().to_string())?,
        folder,
    ))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}
