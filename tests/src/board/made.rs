//! What is a board made of? Its image, and the programs under test for its processor, brought up to date by the scripts of `board/`.

use super::Processor;
use crate::testbed::testbed;
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What `image.sh` and `packages.sh` say when there is neither network nor cache.
const NO_PACKAGES: i32 = 3;

/// All that a board is made of.
#[derive(Debug)]
pub struct Made {
    processor: &'static str,
    /// The folder that everything is built in.
    pub target: PathBuf,
    image: PathBuf,
}

impl Made {
    /// Makes it; None: there are no packages to make the image of.
    pub fn for_board(processor: Processor) -> Result<Option<Self>> {
        let processor = processor.name();
        let target = testbed()?
            .release
            .parent()
            .context("the profile has no target folder above it")?
            .to_owned();
        let image = target.join("board/image").join(processor);
        let mut making = script("image.sh", &target);
        let made = making.arg(processor).arg(&image).output()?;
        if made.status.code() == Some(NO_PACKAGES) {
            eprint!("{}", String::from_utf8_lossy(&made.stderr));
            return Ok(None);
        }
        succeeded(&making, made)?;
        let mut building = script("products.sh", &target);
        let built = building.arg(processor).output()?;
        succeeded(&building, built)?;
        Ok(Some(Self {
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
fn script(name: &str, target: &Path) -> Command {
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
