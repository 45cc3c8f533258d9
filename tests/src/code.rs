//! The ways in which ART executes an app: the interpreters, or code of ART's compiler, which is built from Debian's
//! source.

use crate::release::Release;
use crate::testbed::{Testbed, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How an app's methods are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The interpreter: `-Xint`.
    Interpreted,
    /// ART 14's switch interpreter: `artvm --int`.
    Switch,
    /// Code that the JIT compiles while the app runs.
    Jit,
    /// Code of a boot image. The app is a part of the boot class path.
    Image,
    /// Code in an .odex beside the dex file, which a class loader of the app loads. The boot class path has an image.
    Odex(DexFormat),
    /// Like `Odex`, with the JIT for methods that the .odex does not have.
    Mixed,
}

/// The format of the dex code in a .vdex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DexFormat {
    /// Compact dex, the compiler's default.
    Compact,
    /// The format of the dex file.
    Plain,
}

impl Code {
    /// The code that the JIT need not compile.
    const MIXED_ODEX: Self = Self::Odex(DexFormat::Compact);

    /// All kinds of compiled code.
    pub const COMPILED: [Self; 5] = [
        Self::Jit,
        Self::Image,
        Self::Odex(DexFormat::Compact),
        Self::Odex(DexFormat::Plain),
        Self::Mixed,
    ];

    /// Returns true if ART's compiler writes the code ahead of time.
    pub(crate) const fn is_compiled(self) -> bool {
        !matches!(self, Self::Interpreted | Self::Switch)
    }

    /// Returns true if the JIT compiles some of the methods.
    #[must_use]
    pub const fn has_jit(self) -> bool {
        matches!(self, Self::Jit | Self::Mixed)
    }

    /// Returns artvm's options for an app's dex file, whose code is brought up to date, and the file whose mapping
    /// shows that a process has mapped the app. `compiler` has options for the ahead-of-time compiler.
    pub(crate) fn options(
        self,
        release: Release,
        testbed: &Testbed,
        dex: &Path,
        compiler: &[&str],
    ) -> Result<(Vec<String>, PathBuf)> {
        if self.is_compiled() {
            let target = testbed.release.parent().unwrap_or(Path::new("target"));
            let build = match release {
                Release::Art11 => "art11/build.sh",
                Release::Art14 => "art14/compiler.sh",
            };
            run(Command::new(script(build))
                .arg(&testbed.release)
                .env("CARGO_TARGET_DIR", target))?;
        }
        let usual = Compiler::of(release, testbed);
        let special = match compiler {
            [] => usual.clone(),
            _ => usual.below(&Path::new("with").join(compiler.concat())),
        };
        self.write(&special, &usual, dex, compiler)?;
        if special.folder != usual.folder {
            // The image that the app's code calls.
            self.write(&usual, &usual, dex, &[])?;
        }
        let mapped = self.oat_files(&special.folder, dex).pop();
        let arguments = self.arguments(&usual.folder, &special.folder, dex)?;
        Ok((arguments, mapped.unwrap_or_else(|| dex.to_owned())))
    }

    /// Returns artvm's options for code of the app below `folder` that calls the image below `usual`.
    fn arguments(self, usual: &Path, folder: &Path, dex: &Path) -> Result<Vec<String>> {
        let text = |path: &Path| path.display().to_string();
        let name = dex.file_name().context("no dex file")?;
        Ok(match self {
            Self::Interpreted => vec!["--dex".to_owned(), text(dex)],
            Self::Switch => vec!["--int".to_owned(), "--dex".to_owned(), text(dex)],
            Self::Jit => vec!["--jit".to_owned(), "--dex".to_owned(), text(dex)],
            Self::Image => vec![
                "--image".to_owned(),
                text(&image_with(folder, dex)),
                "--dex".to_owned(),
                text(dex),
            ],
            Self::Odex(format) => vec![
                "--image".to_owned(),
                text(&usual.join("boot")),
                "--app-dex".to_owned(),
                text(&folder.join(format.folder()).join(name)),
            ],
            Self::Mixed => {
                let mut arguments = Self::MIXED_ODEX.arguments(usual, folder, dex)?;
                arguments.insert(0, "--jit".to_owned());
                arguments
            }
        })
    }

    /// Compiles an app, if its code is written ahead of time. `usual` is the compiler of the image that the app's code
    /// calls.
    fn write(
        self,
        compiler: &Compiler,
        usual: &Compiler,
        dex: &Path,
        options: &[&str],
    ) -> Result<()> {
        let folder = &compiler.folder;
        match self {
            Self::Interpreted | Self::Switch | Self::Jit => Ok(()),
            Self::Image => compiler.compile("image", &[&image_with(folder, dex), dex], options),
            Self::Odex(format) => {
                compiler.compile("image", &[&folder.join("boot")], options)?;
                // The image that this code calls, whatever its compiler options.
                let image = usual.folder.join("boot");
                let odex = folder.join(format.folder());
                let options = [&[format.level()], options].concat();
                compiler.compile("app", &[&image, &odex, dex], &options)
            }
            Self::Mixed => Self::MIXED_ODEX.write(compiler, usual, dex, options),
        }
    }

    /// Returns the oat files that an app's process maps, below a folder of the compiler's output, and the one with the
    /// app's code.
    fn oat_files(self, folder: &Path, dex: &Path) -> Vec<PathBuf> {
        let name = dex.file_stem().unwrap_or_default().to_string_lossy();
        match self {
            Self::Interpreted | Self::Switch | Self::Jit => Vec::new(),
            Self::Image => {
                let image = image_with(folder, dex).join("x86_64");
                vec![
                    image.join("boot.oat"),
                    image.join(format!("boot-{name}.oat")),
                ]
            }
            Self::Odex(format) => {
                let odex = format!("oat/x86_64/{name}.odex");
                vec![
                    folder.join("boot/x86_64/boot.oat"),
                    folder.join(format.folder()).join(odex),
                ]
            }
            Self::Mixed => Self::MIXED_ODEX.oat_files(folder, dex),
        }
    }

    /// Returns the mapped oat files with symbols and unwind information. Their code is the same.
    pub(crate) fn with_symbols(
        self,
        release: Release,
        testbed: &Testbed,
        dex: &Path,
    ) -> Result<Vec<PathBuf>> {
        let usual = Compiler::of(release, testbed);
        let symbols = usual.below(Path::new("symbols"));
        self.write(&symbols, &usual, dex, &["--generate-debug-info"])?;
        Ok(self.oat_files(&symbols.folder, dex))
    }
}

/// Returns the folder of a boot image that includes the app in the boot class path.
fn image_with(folder: &Path, dex: &Path) -> PathBuf {
    folder
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

/// Returns a script for ART's compiler.
fn script(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The ahead-of-time compiler of a release.
#[derive(Debug, Clone)]
struct Compiler {
    /// The folder with `dex2oat` and `boot.dex`.
    release: PathBuf,
    /// The folder of its output.
    folder: PathBuf,
}

impl Compiler {
    fn of(release: Release, testbed: &Testbed) -> Self {
        match release {
            Release::Art11 => Self {
                release: testbed.release.clone(),
                folder: testbed.art11.clone(),
            },
            Release::Art14 => Self {
                release: testbed.release.join("art14"),
                folder: testbed.art14.clone(),
            },
        }
    }

    /// Returns the same compiler with an output folder below this one.
    fn below(&self, name: &Path) -> Self {
        Self {
            folder: self.folder.join(name),
            ..self.clone()
        }
    }

    /// Runs the compiler.
    fn compile(&self, kind: &str, arguments: &[&Path], options: &[&str]) -> Result<()> {
        let mut script = Command::new(script("art11/compile.sh"));
        script.arg(&self.release).arg(kind).args(arguments);
        if !options.is_empty() {
            script.arg("--").args(options);
        }
        run(&mut script)
    }
}
