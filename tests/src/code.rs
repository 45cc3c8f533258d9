//! What executes an app in ART? The interpreter, or code of ART's compiler, which is built from Debian's source.

use crate::release::Release;
use crate::testbed::{Testbed, run};
use anyhow::{Context, Result, bail};
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
    /// What of an app's code the JIT has not to compile.
    const MIXED_ODEX: Self = Self::Odex(DexFormat::Compact);

    /// All that is compiled.
    pub const COMPILED: [Self; 5] = [
        Self::Jit,
        Self::Image,
        Self::Odex(DexFormat::Compact),
        Self::Odex(DexFormat::Plain),
        Self::Mixed,
    ];

    /// artvm's options for an app's dex file, whose code is brought up to date, and the file by which it is seen that a process has mapped the
    /// app. `compiler`: options for what the compiler writes ahead of time.
    pub(crate) fn options(
        self,
        release: Release,
        testbed: &Testbed,
        dex: &Path,
        compiler: &[&str],
    ) -> Result<(Vec<String>, PathBuf)> {
        if self != Self::Interpreted {
            let target = testbed.release.parent().unwrap_or(Path::new("target"));
            let build = match (release, self) {
                (Release::Art11, _) => "art11/build.sh",
                (Release::Art14, Self::Jit) => "art14/compiler.sh",
                (Release::Art14, _) => bail!("no compiler writes code of ART 14 ahead of time"),
            };
            run(Command::new(script(build))
                .arg(&testbed.release)
                .env("CARGO_TARGET_DIR", target))?;
        }
        let art11 = match compiler {
            [] => testbed.art11.clone(),
            _ => testbed.art11.join("with").join(compiler.concat()),
        };
        self.write(testbed, &art11, dex, compiler)?;
        if art11 != testbed.art11 {
            // The image whose code an app's calls.
            self.write(testbed, &testbed.art11, dex, &[])?;
        }
        let mapped = self.oat_files(&art11, dex).pop();
        let arguments = self.arguments(testbed, &art11, dex)?;
        Ok((arguments, mapped.unwrap_or_else(|| dex.to_owned())))
    }

    /// artvm's options where the app's code is below a folder.
    fn arguments(self, testbed: &Testbed, art11: &Path, dex: &Path) -> Result<Vec<String>> {
        let text = |path: &Path| path.display().to_string();
        let name = dex.file_name().context("no dex file")?;
        Ok(match self {
            Self::Interpreted => vec!["--dex".to_owned(), text(dex)],
            Self::Jit => vec!["--jit".to_owned(), "--dex".to_owned(), text(dex)],
            Self::Image => vec![
                "--image".to_owned(),
                text(&image_with(art11, dex)),
                "--dex".to_owned(),
                text(dex),
            ],
            Self::Odex(format) => vec![
                "--image".to_owned(),
                text(&testbed.art11.join("boot")),
                "--app-dex".to_owned(),
                text(&art11.join(format.folder()).join(name)),
            ],
            Self::Mixed => {
                let mut arguments = Self::MIXED_ODEX.arguments(testbed, art11, dex)?;
                arguments.insert(0, "--jit".to_owned());
                arguments
            }
        })
    }

    /// Has the compiler write the code of an app below a folder, if it writes any ahead of time.
    fn write(self, testbed: &Testbed, art11: &Path, dex: &Path, options: &[&str]) -> Result<()> {
        match self {
            Self::Interpreted | Self::Jit => Ok(()),
            Self::Image => compile(testbed, "image", &[&image_with(art11, dex), dex], options),
            Self::Odex(format) => {
                compile(testbed, "image", &[&art11.join("boot")], options)?;
                // The image whose code this one calls, whatever it was compiled with.
                let image = testbed.art11.join("boot");
                let folder = art11.join(format.folder());
                let options = [&[format.level()], options].concat();
                compile(testbed, "app", &[&image, &folder, dex], &options)
            }
            Self::Mixed => Self::MIXED_ODEX.write(testbed, art11, dex, options),
        }
    }

    /// The oat files that an app's process maps, below a folder of what the compiler writes, and of these the one that has the app's code.
    fn oat_files(self, art11: &Path, dex: &Path) -> Vec<PathBuf> {
        let name = dex.file_stem().unwrap_or_default().to_string_lossy();
        match self {
            Self::Interpreted | Self::Jit => Vec::new(),
            Self::Image => {
                let image = image_with(art11, dex).join("x86_64");
                vec![
                    image.join("boot.oat"),
                    image.join(format!("boot-{name}.oat")),
                ]
            }
            Self::Odex(format) => {
                let odex = format!("oat/x86_64/{name}.odex");
                vec![
                    art11.join("boot/x86_64/boot.oat"),
                    art11.join(format.folder()).join(odex),
                ]
            }
            Self::Mixed => Self::MIXED_ODEX.oat_files(art11, dex),
        }
    }

    /// The oat files that the process maps as the compiler writes them with symbols and unwind information: the code is the same.
    pub(crate) fn with_symbols(self, testbed: &Testbed, dex: &Path) -> Result<Vec<PathBuf>> {
        let art11 = testbed.art11.join("symbols");
        self.write(testbed, &art11, dex, &["--generate-debug-info"])?;
        Ok(self.oat_files(&art11, dex))
    }
}

/// The folder of a boot image in which an app is a part of the boot class path.
fn image_with(art11: &Path, dex: &Path) -> PathBuf {
    art11
        .join("image")
        .join(dex.file_name().unwrap_or_default())
}

impl DexFormat {
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Plain => "plain",
        }
    }

    pub(crate) fn level(self) -> &'static str {
        match self {
            Self::Compact => "--compact-dex-level=fast",
            Self::Plain => "--compact-dex-level=none",
        }
    }
}

/// A script that has to do with ART's compiler.
fn script(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs ART's compiler.
fn compile(testbed: &Testbed, kind: &str, arguments: &[&Path], options: &[&str]) -> Result<()> {
    let mut script = Command::new(script("art11/compile.sh"));
    script.arg(&testbed.release).arg(kind).args(arguments);
    if !options.is_empty() {
        script.arg("--").args(options);
    }
    run(&mut script)
}
