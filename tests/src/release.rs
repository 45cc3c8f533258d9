//! The releases of ART.

/// The release of ART that runs an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Android 11, which is installed on the system.
    Art11,
    /// Android 14, beside artvm.
    Art14,
}
