//! HotSpot: known by its library's name, so that its code is shown as a VM's. Its frames are not walked.

use std::path::Path;

/// Whether a file of this path is HotSpot's library.
pub fn is_library(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "libjvm.so")
}
