//! What executes an app in ART? The interpreter, or code of ART's compiler, which is built from Debian's source.

use crate::release::Release;
use crate::testbed::{Testbed, run};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What executes an app's methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The interpreter: `-Xint`.
    Interpreted,
    /// ART 14's switch interpreter: `artvm --int`.
    Switch,
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

    /// Whether ART's compiler has written code for it.
    pub(crate) const fn is_compiled(self) -> bool {
        !matches!(self, Self::Interpreted | Self::Switch)
    }

    /// Whether the JIT compiles some of the methods.
    #[must_use]
    pub const fn has_jit(self) -> bool {
        matches!(self, Self::Jit | Self::Mixed)
    }

    /// artvm's options for an app's dex file, whose code is brought up to date, and the file by which it is seen that a process has mapped the
    /// app. `compiler`: options for what the compiler writes ahead of time.
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
            // The image whose code an app's calls.
            self.write(&usual, &usual, dex, &[])?;
        }
        let mapped = self.oat_files(&special.folder, dex).pop();
        let arguments = self.arguments(&usual.folder, &special.folder, dex)?;
        Ok((arguments, mapped.unwrap_or_else(|| dex.to_owned())))
    }

    /// artvm's options where the app's code is below a folder, and the image whose code it calls below `usual`.
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

    /// Has a compiler write the code of an app, if it writes any ahead of time. `usual`: what writes the image whose code an app's calls.
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
                // The image whose code this one calls, whatever it was compiled with.
                let image = usual.folder.join("boot");
                let odex = folder.join(format.folder());
                let options = [&[format.level()], options].concat();
                compiler.compile("app", &[&image, &odex, dex], &options)
            }
            Self::Mixed => Self::MIXED_ODEX.write(compiler, usual, dex, options),
        }
    }

    /// The oat files that an app's process maps, below a folder of what the compiler writes, and of these the one that has the app's code.
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

    /// The oat files that the process maps as the compiler writes them with symbols and unwind information: the code is the same.
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

/// The folder of a boot image in which an app is a part of the boot class path.
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

/// A script that has to do with ART's compiler.
fn script(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The compiler of a release that writes code ahead of time.
#[derive(Debug, Clone)]
struct Compiler {
    /// The folder with `dex2oat` and `boot.dex`.
    release: PathBuf,
    /// The folder of what it writes.
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

    /// The same, which writes into a folder below.
    fn below(&self, name: &Path) -> Self {
        Self {
            folder: self.folder.join(name),
            ..self.clone()
        }
    }

    /// Runs it.
    fn compile(&self, kind: &str, arguments: &[&Path], options: &[&str]) -> Result<()> {
        let mut script = Command::new(script("art11/compile.sh"));
        script.arg(&self.release).arg(kind).args(arguments);
        if !options.is_empty() {
            script.arg("--").args(options);
        }
        run(&mut script)
    }
}
