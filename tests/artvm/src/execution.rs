//! What executes the program's methods? The interpreter alone, or code of ART's compiler, too.

use std::path::{Path, PathBuf};

/// The options that bring compiled code into the VM; none of them: the interpreter alone.
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
                let mut all: Vec<_> = interpreter.iter().map(|&option| option.to_owned()).collect();
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
