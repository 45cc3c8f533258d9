//! What executes the program's methods? The interpreter alone, or code of ART's compiler, too.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::release::Release;

/// The options that say what executes the program's methods; none of them: the release's interpreter alone.
#[derive(Debug, Default, clap::Args)]
pub struct CodeOptions {
    /// Compile what runs often while the program runs (tests/art11/build.sh builds the compiler)
    #[arg(long)]
    pub jit: bool,
    /// Run the code of the boot image in DIR, which dex2oat wrote for --boot's file and those of --dex (tests/art11/compile.sh)
    #[arg(long, value_name = "DIR")]
    pub image: Option<PathBuf>,
    /// The app's dex file, loaded by a class loader of its own with the code that dex2oat wrote for it (oat/x86_64/NAME.odex beside it)
    #[arg(long, value_name = "FILE")]
    pub app_dex: Option<PathBuf>,
    /// Interpret with the interpreter of -Xint: ART 14 by its switch interpreter instead of by nterp; ART 11 does so anyway
    #[arg(long, conflicts_with_all = ["jit", "image", "app_dex"])]
    pub int: bool,
}

/// What executes the program's methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution<'a> {
    /// The interpreter, each of them.
    Interpreted(Interpreter),
    /// Compiled code where there is any, nterp where there is none.
    Compiled {
        /// The folder of the boot image, if there is one.
        image: Option<&'a Path>,
        /// Whether methods are compiled while they run.
        jit: Jit,
    },
}

/// Which interpreter executes methods, where all are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interpreter {
    /// The release's own.
    Default,
    /// That of `-Xint`.
    Int,
}

/// Whether methods are compiled while they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jit {
    /// By libart-compiler, once they are hot.
    On,
    /// Only code of before the start runs.
    Off,
}

/// How often a method is called, or a loop of it turns, until it is compiled.
const HOT: u32 = 1000;

/// There is no image here.
const NO_IMAGE: &str = "/nonexistent/boot.art";

/// The name of this machine's instruction set in the paths of compiled code, as ART's.
const INSTRUCTION_SET: &str = if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    std::env::consts::ARCH
};

impl CodeOptions {
    /// What these options mean.
    pub fn execution(&self) -> Execution<'_> {
        if !self.jit && self.image.is_none() && self.app_dex.is_none() {
            return Execution::Interpreted(if self.int {
                Interpreter::Int
            } else {
                Interpreter::Default
            });
        }
        Execution::Compiled {
            image: self.image.as_deref(),
            jit: if self.jit { Jit::On } else { Jit::Off },
        }
    }

    /// A file of the boot class path as the VM is to know it: an image is refused if one of its files has another name now.
    pub fn location(&self, dex: &Path) -> PathBuf {
        match (&self.image, dex.canonicalize()) {
            (Some(_), Ok(path)) => path,
            _ => dex.to_owned(),
        }
    }

    /// Fails if ART, which says little and interprets instead, did not take compiled code that is there for the options.
    pub fn check_code_is_used(&self) -> Result<(), Error> {
        let image = self
            .image
            .as_ref()
            .map(|folder| folder.join(INSTRUCTION_SET).join("boot.oat"));
        let app = self.app_dex.as_ref().map(|dex| odex(dex));
        let expected = image
            .into_iter()
            .chain(app.filter(|odex| odex.exists()))
            .map(|file| file.canonicalize().unwrap_or(file));
        let maps = std::fs::read_to_string(MAPS).map_err(|source| Error::File {
            path: MAPS.into(),
            source,
            hint: "",
        })?;
        for file in expected {
            let name = format!(" {}", file.display());
            let is_code = |line: &str| line.contains(" r-xp ") && line.ends_with(&name);
            if !maps.lines().any(is_code) {
                return Err(Error::CodeRefused(file));
            }
        }
        Ok(())
    }
}

/// The process's mappings.
const MAPS: &str = "/proc/self/maps";

/// Where ART looks for the code of an app's dex file.
fn odex(dex: &Path) -> PathBuf {
    let folder = dex.parent().unwrap_or(Path::new("."));
    let mut file = folder.join("oat").join(INSTRUCTION_SET);
    file.push(dex.file_name().unwrap_or_default());
    file.with_extension("odex")
}

impl Execution<'_> {
    /// Whether methods are compiled while they run.
    pub fn jit(self) -> Jit {
        match self {
            Execution::Interpreted(_) => Jit::Off,
            Execution::Compiled { jit, .. } => jit,
        }
    }

    /// The VM's options. No image is made at the start.
    pub fn vm_options(self, release: &Release) -> Vec<String> {
        let image = |file: &str| [format!("-Ximage:{file}"), "-Xnoimage-dex2oat".to_owned()];
        match self {
            Execution::Interpreted(interpreter) => {
                let options = match interpreter {
                    Interpreter::Default => release.default_interpreter,
                    Interpreter::Int => &["-Xint"],
                };
                let options = options.iter().map(|option| (*option).to_owned());
                options.chain(image(NO_IMAGE)).collect()
            }
            Execution::Compiled { image: folder, jit } => {
                let mut all = match jit {
                    Jit::On => vec!["-Xusejit:true".to_owned(), format!("-Xjitthreshold:{HOT}")],
                    Jit::Off => vec!["-Xusejit:false".to_owned()],
                };
                let file = folder.map_or_else(
                    || NO_IMAGE.to_owned(),
                    |folder| folder.join("boot.art").display().to_string(),
                );
                all.extend(image(&file));
                all
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{CodeOptions, Execution, INSTRUCTION_SET, Interpreter, Jit, odex};
    use crate::release::Version;

    #[test]
    fn without_an_option_for_code_all_is_interpreted() {
        let options = CodeOptions::default();
        let execution = options.execution();
        assert_eq!(execution, Execution::Interpreted(Interpreter::Default));
        let first = |version: Version| execution.vm_options(version.release())[0].clone();
        assert_eq!(first(Version::Android11), "-Xint");
        assert_eq!(first(Version::Android14), "-Xusejit:false");
    }

    #[test]
    fn each_release_has_the_interpreter_of_xint() {
        let options = CodeOptions {
            int: true,
            ..CodeOptions::default()
        };
        for version in [Version::Android11, Version::Android14] {
            let options = options.execution().vm_options(version.release());
            assert_eq!(options[0], "-Xint");
        }
    }

    #[test]
    fn code_of_before_the_start_needs_no_jit() {
        let options = CodeOptions {
            app_dex: Some("app.dex".into()),
            ..CodeOptions::default()
        };
        assert_eq!(options.execution().jit(), Jit::Off);
        let release = Version::Android11.release();
        assert_eq!(options.execution().vm_options(release)[0], "-Xusejit:false");
    }

    #[test]
    fn code_of_an_app_is_beside_its_dex_file() {
        assert_eq!(
            odex(Path::new("/data/app.v1.dex")),
            Path::new("/data/oat")
                .join(INSTRUCTION_SET)
                .join("app.v1.odex")
        );
    }
}
