//! The environment of a program whose VMs load the agent, and the room for their trees.

use std::{env, path::Path};

use varid_exact_agent::Options;
use varid_instrument::Intrinsics;

use crate::error::{Error, Result};

/// The variable with options for each VM that a program starts, itself or by a script. The VM prints a line about it to standard error.
const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// What a VM needs to execute the bytecode of all methods that are counted: no lines about methods without HotSpot's annotation, and no optimizations
/// that remove calls of methods by their names. VMs without C2 do not know the last two.
const WITHOUT_INTRINSICS: &str = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-DisplayVMOutput \
     -XX:-OptimizeStringConcat -XX:-EliminateAutoBox ";

/// Returns the variable, with its value, by which the VMs of a program load an agent's library with options. Options that this process's
/// environment has come first.
///
/// # Errors
///
/// A path has a quote, a line break, or bytes that are not UTF-8: VMs have no way to write those.
pub fn tool_options(agent: &Path, options: &Options) -> Result<(&'static str, String)> {
    for path in [agent, &options.folder] {
        if path.to_str().is_none_or(|path| path.contains(['"', '\n'])) {
            return Err(Error::Path {
                path: path.to_owned(),
            });
        }
    }
    let mut all = env::var(TOOL_OPTIONS).unwrap_or_default();
    if !all.is_empty() {
        all.push(' ');
    }
    if options.intrinsics == Intrinsics::Expanded {
        all.push_str(WITHOUT_INTRINSICS);
    }
    // A VM takes the quotes away, so that paths may have spaces.
    all.push_str(&format!("\"-agentpath:{}={options}\"", agent.display()));
    Ok((TOOL_OPTIONS, all))
}

/// Returns the bytes that are free on the file system of a folder for this user.
///
/// # Errors
///
/// The folder cannot be read.
pub fn free_bytes(folder: &Path) -> Result<u64> {
    let found = nix::sys::statvfs::statvfs(folder)
        .map_err(|error| Error::io("read", folder)(error.into()))?;
    #[allow(clippy::useless_conversion, reason = "they have 32 bits on ARM")]
    let (blocks, size) = (
        u64::from(found.blocks_available()),
        u64::from(found.fragment_size()),
    );
    Ok(blocks.saturating_mul(size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_instrument::Counted;

    #[test]
    fn a_folder_may_have_spaces_but_no_quotes() {
        let value = |folder: &str| {
            let options = Options {
                counted: Counted::Calls,
                intrinsics: Intrinsics::Leaves,
                bytes: 64,
                class_files: false,
                is_switched: false,
                within: None,
                include: Vec::new(),
                folder: folder.into(),
            };
            tool_options(Path::new("/a b/agent.so"), &options)
        };
        let (_, options) = value("/c d").unwrap();
        assert!(
            options.ends_with("\"-agentpath:/a b/agent.so=calls,leaves,64,none,always,,,/c d\""),
            "{options}"
        );
        assert!(value("/c\"d").is_err());
    }
}
