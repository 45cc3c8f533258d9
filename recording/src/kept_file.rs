//! Says which file of a session names the addresses of a mapped file.

use serde::{Deserialize, Serialize};

/// The symbols of a mapped file, as the session keeps them. Mappings have the original's path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptFile {
    /// The original's path as mappings have it (lossy if it is not UTF-8).
    pub path: String,
    /// Its build-id in hexadecimal; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build_id: String,
    /// The session's file: `symbols/ID/NAME`.
    pub file: String,
}
