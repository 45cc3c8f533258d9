//! The files of a board: its image, and the programs under test for its processor. The scripts of `board/` bring them
//! up to date.

use super::Processor;
use crate::scale::{Scale, scale};
use crate::testbed::{skipped, testbed};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Exit status of the scripts if packages (without network or cache) or rustup's standard library for the processor are
/// missing.
const LACKING: i32 = 3;

/// The files of a board.
#[derive(Debug)]
pub struct Made {
    processor: &'static str,
    /// The folder of all build results.
    pub target: PathBuf,
    image: PathBuf,
}

/// The result, or the reason why it cannot be made here, or an error.
pub type Making<T> = std::result::Result<std::result::Result<T, String>, String>;

impl Made {
    /// Makes the files once in a test program. None if the test must be skipped; the reason is printed.
    pub fn for_board(processor: Processor, test: &str) -> Result<Option<&'static Self>> {
        static ARM64: OnceLock<Making<Made>> = OnceLock::new();
        static ARMHF: OnceLock<Making<Made>> = OnceLock::new();
        let making = match processor {
            Processor::Arm64 => &ARM64,
            Processor::Armhf => &ARMHF,
        };
        made_once(making, test, || Self::make(processor.name()))
    }

    fn make(processor: &'static str) -> Result<std::result::Result<Self, String>> {
        let target = testbed()?
            .release
            .parent()
            .context("the profile has no target folder above it")?
            .to_owned();
        let image = target.join("board/image").join(processor);
        let mut making = script("image.sh", &target);
        if let Err(lacking) = made_by(making.arg(processor).arg(&image))? {
            return Ok(Err(lacking));
        }
        let mut building = script("products.sh", &target);
        if scale() == Scale::Gate {
            building.arg("--trial");
        }
        if let Err(lacking) = made_by(building.arg(processor))? {
            return Ok(Err(lacking));
        }
        Ok(Ok(Self {
            processor,
            target,
            image,
        }))
    }

    /// Returns `boot.sh` as a command without arguments.
    pub fn boot(&self) -> Command {
        let mut boot = script("boot.sh", &self.target);
        boot.arg(self.processor).arg(&self.image);
        boot
    }

    /// Returns varid, artvm, its agent and libraries, boot.dex and the workloads' dex files.
    pub fn programs(&self) -> Result<Vec<PathBuf>> {
        let testbed = testbed()?;
        let mut programs = entries(&self.target.join("board").join(self.processor))?;
        programs.push(testbed.boot_dex());
        let dex = Some(OsStr::new("dex"));
        let workloads = entries(&testbed.workloads)?.into_iter();
        programs.extend(workloads.filter(|path| path.extension() == dex));
        Ok(programs)
    }
}

/// Returns the result of the first call. None if the test must be skipped; the reason is printed.
pub fn made_once<T>(
    making: &'static OnceLock<Making<T>>,
    test: &str,
    make: impl FnOnce() -> Result<std::result::Result<T, String>>,
) -> Result<Option<&'static T>> {
    match making.get_or_init(|| make().map_err(|error| format!("{error:#}"))) {
        Err(error) => bail!("{error}"),
        Ok(Err(lacking)) => {
            skipped(test, lacking);
            Ok(None)
        }
        Ok(Ok(made)) => Ok(Some(made)),
    }
}

/// Runs a script that makes files. The inner error is what the script lacks.
pub fn made_by(script: &mut Command) -> Result<std::result::Result<(), String>> {
    let output = script.output()?;
    if output.status.code() == Some(LACKING) {
        let lacking = String::from_utf8_lossy(&output.stderr);
        return Ok(Err(lacking.trim_end().to_owned()));
    }
    succeeded(script, output).map(Ok)
}

/// Returns the visible entries of a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

/// Returns a script of `board/` that builds below `target`.
pub fn script(name: &str, target: &Path) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("board")
        .join(name);
    let mut script = Command::new(path);
    script.env("CARGO_TARGET_DIR", target).stdin(Stdio::null());
    script
}

/// Returns an error with the command's output if it failed.
pub fn succeeded(command: &Command, output: Output) -> Result<()> {
    ensure!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
