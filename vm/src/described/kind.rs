//! Which kinds of VM are there whose layout somebody describes?

use super::Description;
use crate::seam::Vm;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use varid_process::reader::ForeignFile;
use varid_process::{BytecodeFormat, Process};
use varid_tunnel::builds::Build;

/// A kind of VM whose layout a tunnel, the table of builds or its library describes.
pub trait DescribedKind: fmt::Debug + Sync {
    /// Whether a file of this path is a library of this kind, whatever build of it.
    fn is_library(&self, _path: &Path) -> bool {
        false
    }

    /// The VM that this describes; None: it is another kind's.
    fn recognise(&self, description: &Description) -> Option<Rc<dyn Vm>>;

    /// The format of its bytecode files, if that is not dex.
    fn bytecode(&self) -> Option<&'static dyn BytecodeFormat> {
        None
    }

    /// The build with this build-id, if this kind's table has it.
    fn build(&self, _build_id: &[u8]) -> Option<&'static Build> {
        None
    }

    /// What a library of no build that is known says itself, as the process that has loaded it at `load_base` agrees.
    fn ask_library(
        &self,
        _file: &ForeignFile,
        _process: &Process,
        _load_base: u64,
    ) -> AskedLibrary {
        AskedLibrary::Refused("libraries of its kind are not asked".to_owned())
    }

    /// What a library of no build that is known says itself, by its bytes: whether that is a layout.
    ///
    /// # Errors
    ///
    /// Why it is none.
    fn read_library(&self, _library: &[u8]) -> Result<(), String> {
        Err("libraries of its kind are not asked".to_owned())
    }
}

/// What a library says of its VM.
#[derive(Debug)]
pub enum AskedLibrary {
    /// This, and the process agrees.
    Agrees(Box<Description>),
    /// There is nothing yet that could be checked, for this reason.
    NotUp(&'static str),
    /// The process does not agree in this, or was changing.
    Differs(String),
    /// Not enough, for this reason.
    Refused(String),
}
