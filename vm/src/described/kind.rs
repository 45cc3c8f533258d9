//! Kinds of VM with a layout description.

use super::Description;
use crate::seam::Vm;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use varid_process::reader::ForeignFile;
use varid_process::{BytecodeFormat, Process};
use varid_tunnel::builds::Build;

/// A kind of VM whose layout comes from a tunnel, the table of builds or its library.
pub trait DescribedKind: fmt::Debug + Sync {
    /// Returns true if `path` names a library of this kind, of any build.
    fn is_library(&self, _path: &Path) -> bool {
        false
    }

    /// Returns the VM if `description` is of this kind.
    fn recognise(&self, description: &Description) -> Option<Rc<dyn Vm>>;

    /// The format of its bytecode files, if that is not dex.
    fn bytecode(&self) -> Option<&'static dyn BytecodeFormat> {
        None
    }

    /// Looks up a build-id in this kind's table of builds.
    fn build(&self, _build_id: &[u8]) -> Option<&'static Build> {
        None
    }

    /// Derives the layout of an unknown build from its library, and checks it in the process, which has loaded the library at `load_base`.
    fn derive_layout(
        &self,
        _file: &ForeignFile,
        _process: &Process,
        _load_base: u64,
    ) -> DerivedLayout {
        DerivedLayout::Refused("no layout is derived from libraries of its kind".to_owned())
    }

    /// Checks whether a layout can be derived from a library's bytes.
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    fn check_library(&self, _library: &[u8]) -> Result<(), String> {
        Err("no layout is derived from libraries of its kind".to_owned())
    }
}

/// The result of [`DescribedKind::derive_layout`].
#[derive(Debug)]
pub enum DerivedLayout {
    /// A layout that the process confirms.
    Agrees(Box<Description>),
    /// The process has not started far enough to check it.
    NotUp(&'static str),
    /// The process differs in this check, or was changing.
    Differs(String),
    /// No layout can be derived, for this reason.
    Refused(String),
}
