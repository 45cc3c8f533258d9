//! What is a board made of? Its image, and the programs under test for its processor, brought up to date by the scripts of `board/`.

use super::Processor;
use crate::scale::{Scale, scale};
use crate::testbed::{skipped, testbed};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// What scripts say that lack packages (there is neither network nor cache) or rustup's standard library for the processor.
const LACKING: i32 = 3;

/// All that a board is made of.
#[derive(Debug)]
pub struct Made {
    processor: &'static str,
    /// The folder that everything is built in.
    pub target: PathBuf,
    image: PathBuf,
}

/// What could be made, or what is lacking here, or what went wrong.
pub type Making<T> = std::result::Result<std::result::Result<T, String>, String>;

impl Made {
    /// Makes it, once in a test program; None, and the reason is printed: the test must be left out.
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

    /// `boot.sh`, ready to hear how.
    pub fn boot(&self) -> Command {
        let mut boot = script("boot.sh", &self.target);
        boot.arg(self.processor).arg(&self.image);
        boot
    }

    /// varid, artvm, its agent and libraries, boot.dex and the workloads' dex files.
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

/// What is made at the first call; None, and the reason is printed: the test must be left out.
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

/// Runs a script that makes something; or what it lacks.
pub fn made_by(script: &mut Command) -> Result<std::result::Result<(), String>> {
    let output = script.output()?;
    if output.status.code() == Some(LACKING) {
        let lacking = String::from_utf8_lossy(&output.stderr);
        return Ok(Err(lacking.trim_end().to_owned()));
    }
    succeeded(script, output).map(Ok)
}

/// What is in a folder, without what is hidden.
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

/// A script of `board/`, building below `target`.
pub fn script(name: &str, target: &Path) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("board")
        .join(name);
    let mut script = Command::new(path);
    script.env("CARGO_TARGET_DIR", target).stdin(Stdio::null());
    script
}

/// Whether a command did what it was asked; else what it said.
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
