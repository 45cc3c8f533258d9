//! What executes an app in ART 11? The interpreter, or code of ART's compiler, which is built from Debian's source.

use crate::testbed::{Testbed, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What executes an app's methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The interpreter: `-Xint`.
    Interpreted,
    /// Code that the JIT writes while the app runs.
    Jit,
    /// Code of a boot image, in which the app is a part of the boot class path.
    Image,
    /// Code in an .odex beside the dex file, which a class loader of the app loads; the boot class path has an image.
    Odex(DexFormat),
    /// The same, with the JIT for what the .odex does not have.
    Mixed,
}

/// How the dex code in a .vdex is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DexFormat {
    /// As compact dex, which is the compiler's own choice.
    Compact,
    /// As in the dex file.
    Plain,
}

impl Code {
    /// All that is compiled.
    pub const COMPILED: [Self; 5] = [
        Self::Jit,
        Self::Image,
        Self::Odex(DexFormat::Compact),
        Self::Odex(DexFormat::Plain),
        Self::Mixed,
    ];

    /// artvm's options for an app's dex file, whose code is brought up to date.
    pub(crate) fn options(self, testbed: &Testbed, dex: &Path) -> Result<Vec<String>> {
        let text = |path: &Path| path.display().to_string();
        let name = dex.file_name().context("no dex file")?;
        if self != Self::Interpreted {
            let target = testbed.release.parent().unwrap_or(Path::new("target"));
            run(Command::new(script("build.sh"))
                .arg(&testbed.release)
                .env("CARGO_TARGET_DIR", target))?;
        }
        let options = match self {
            Self::Interpreted => vec!["--dex".to_owned(), text(dex)],
            Self::Jit => vec!["--jit".to_owned(), "--dex".to_owned(), text(dex)],
            Self::Image => {
                let image = testbed.art11.join("image").join(name);
                compile(testbed, "image", &[&image, dex])?;
                vec![
                    "--image".to_owned(),
                    text(&image),
                    "--dex".to_owned(),
                    text(dex),
                ]
            }
            Self::Odex(format) => {
                let (folder, level) = match format {
                    DexFormat::Compact => ("compact", "--compact-dex-level=fast"),
                    DexFormat::Plain => ("plain", "--compact-dex-level=none"),
                };
                let folder = testbed.art11.join(folder);
                let image = testbed.art11.join("boot");
                compile(testbed, "image", &[&image])?;
                let options = [Path::new("--"), Path::new(level)];
                compile(
                    testbed,
                    "app",
                    &[&[&image, &folder, dex], &options[..]].concat(),
                )?;
                vec![
                    "--image".to_owned(),
                    text(&image),
                    "--app-dex".to_owned(),
                    text(&folder.join(name)),
                ]
            }
            Self::Mixed => {
                let mut options = Self::Odex(DexFormat::Compact).options(testbed, dex)?;
                options.insert(0, "--jit".to_owned());
                options
            }
        };
        Ok(options)
    }
}

/// A script of the folder that builds ART's compiler.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("art11")
        .join(name)
}

/// Runs ART's compiler.
fn compile(testbed: &Testbed, kind: &str, arguments: &[&Path]) -> Result<()> {
    run(Command::new(script("compile.sh"))
        .arg(&testbed.release)
        .arg(kind)
        .args(arguments))
}
