//! Starts a program whose VMs load the agent.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use varid_exact_agent::Options;

use crate::error::{Error, Result};

/// The variable with options for each VM that a program starts, itself or by a script. The VM prints a line about it to standard error.
const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// A program, and what its VMs count.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program with its arguments.
    pub command: Vec<OsString>,
    /// The agent's library.
    pub agent: PathBuf,
    /// What is counted, and where.
    pub options: Options,
}

impl Launch {
    /// Starts the program.
    ///
    /// # Errors
    ///
    /// The program cannot be run, or a path has quotes, which no option of a VM can have.
    pub fn start(&self) -> Result<Child> {
        let (program, arguments) = self.command.split_first().ok_or_else(|| Error::Path {
            path: PathBuf::new(),
            what: "no command",
        })?;
        Command::new(program)
            .args(arguments)
            .env(TOOL_OPTIONS, self.tool_options()?)
            .spawn()
            .map_err(Error::io("run", Path::new(program)))
    }

    /// Returns the options for VMs, behind those that the environment has.
    fn tool_options(&self) -> Result<OsString> {
        for path in [&self.agent, &self.options.folder] {
            let text = path.to_string_lossy();
            if text.contains(['"', '\n']) || path.to_str().is_none() {
                return Err(Error::Path {
                    path: path.clone(),
                    what: "a quote, a line break or bytes that are not UTF-8",
                });
            }
        }
        let mut all = env::var_os(TOOL_OPTIONS).unwrap_or_default();
        if !all.is_empty() {
            all.push(" ");
        }
        // A VM takes the quotes away, so that paths may have spaces.
        all.push(format!(
            "\"-agentpath:{}={}\"",
            self.agent.display(),
            self.options
        ));
        Ok(all)
    }
}

/// Returns the bytes that are free on the file system of a folder for this user.
///
/// # Errors
///
/// The folder cannot be read.
pub fn free_bytes(folder: &Path) -> Result<u64> {
    let found = nix::sys::statvfs::statvfs(folder)
        .map_err(|error| Error::io("read", folder)(error.into()))?;
    Ok(u64::from(found.blocks_available()).saturating_mul(u64::from(found.fragment_size())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_instrument::Counted;

    #[test]
    fn a_folder_may_have_spaces_but_no_quotes() {
        let launch = |folder: &str| Launch {
            command: vec!["java".into()],
            agent: "/a b/agent.so".into(),
            options: Options {
                counted: Counted::Calls,
                bytes: 64,
                folder: folder.into(),
            },
        };
        let options = launch("/c d").tool_options().unwrap();
        let options = options.to_string_lossy().into_owned();
        assert!(
            options.ends_with("\"-agentpath:/a b/agent.so=calls,64,/c d\""),
            "{options}"
        );
        assert!(launch("/c\"d").tool_options().is_err());
    }
}
