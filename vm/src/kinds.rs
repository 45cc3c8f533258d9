//! The built-in kinds of VM.

use crate::art::Art;
use crate::dalvik::Dalvik;
use crate::described::Described;
use crate::hotspot::HotSpot;
use crate::seam::VmKinds;
use crate::shadow::Shadow;

/// The kinds with a layout description.
pub(crate) const DESCRIBED: Described = Described(&[&Art, &Dalvik, &Shadow]);

/// ```
/// use std::path::Path;
/// use varid_vm::VmKinds;
///
/// let kinds = VmKinds::default();
/// assert!(kinds.is_library(Path::new("/apex/com.android.art/lib64/libart.so")));
/// assert!(!kinds.is_library(Path::new("/usr/lib/libc.so.6")));
/// ```
impl Default for VmKinds {
    fn default() -> Self {
        Self(&[&DESCRIBED, &HotSpot])
    }
}
