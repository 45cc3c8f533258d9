//! Which ART runs an app?

/// Which release of ART an app runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Android 11's, which is installed.
    Art11,
    /// Android 14's, beside artvm.
    Art14,
}
