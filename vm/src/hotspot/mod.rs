//! HotSpot: recognised by its library's name, so that its code has the layer `vm`. Its frames are not walked.

use crate::seam::{Found, VmKind};
use std::path::Path;
use varid_process::Process;

/// The VM of OpenJDK.
#[derive(Debug)]
pub struct HotSpot;

impl VmKind for HotSpot {
    fn is_library(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == "libjvm.so")
    }

    fn is_announced_by(&self, _path: &Path) -> bool {
        false
    }

    fn find(&self, _process: &Process) -> Found {
        Found::No
    }
}
