//! What executes the program's methods? The interpreter alone, or code of ART's compiler, too.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The options that bring compiled code into the VM; none of them: the interpreter alone.
#[derive(Debug, Default, clap::Args)]
pub struct CodeOptions {
    /// Compile what runs often while the program runs (tests/art11/build.sh builds the compiler)
    #[arg(long)]
    pub jit: bool,
    /// Run the code of the boot image in DIR, which dex2oat wrote for --boot's file and those of --dex (tests/art11/compile.sh)
    #[arg(long, value_name = "DIR")]
    pub image: Option<PathBuf>,
    /// The app's dex file, loaded by a class loader of its own with the code that dex2oat wrote for it (oat/x86_64/NAME.odex beside it, on arm64 oat/arm64/NAME.odex)
    #[arg(long, value_name = "FILE")]
    pub app_dex: Option<PathBuf>,
}

/// What executes the program's methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution<'a> {
    /// The interpreter, each of them.
    Interpreted,
    /// Compiled code where there is any, nterp where there is none.
    Compiled {
        /// The folder of the boot image, if there is one.
        image: Option<&'a Path>,
        /// Whether methods are compiled while they run.
        jit: Jit,
    },
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
            return Execution::Interpreted;
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
            Execution::Interpreted => Jit::Off,
            Execution::Compiled { jit, .. } => jit,
        }
    }

    /// The VM's options, with those for its interpreter where that is all. No image is made at the start.
    pub fn vm_options(self, interpreter: &[&str]) -> Vec<String> {
        let image = |file: &str| [format!("-Ximage:{file}"), "-Xnoimage-dex2oat".to_owned()];
        match self {
            Execution::Interpreted => {
                let mut all: Vec<_> = interpreter
                    .iter()
                    .map(|&option| option.to_owned())
                    .collect();
                all.extend(image(NO_IMAGE));
                all
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

    use super::{CodeOptions, Execution, INSTRUCTION_SET, Jit, odex};

    #[test]
    fn without_an_option_for_code_all_is_interpreted() {
        let options = CodeOptions::default();
        let execution = options.execution();
        assert_eq!(execution, Execution::Interpreted);
        assert_eq!(execution.vm_options(&["-Xint"])[0], "-Xint");
    }

    #[test]
    fn code_of_before_the_start_needs_no_jit() {
        let options = CodeOptions {
            app_dex: Some("app.dex".into()),
            ..CodeOptions::default()
        };
        assert_eq!(options.execution().jit(), Jit::Off);
        assert_eq!(
            options.execution().vm_options(&["-Xint"])[0],
            "-Xusejit:false"
        );
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
