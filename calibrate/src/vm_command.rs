//! How is a VM started?

use crate::error::{Error, Result};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

const CLASS_PATH: &str = "{classpath}";
const CLASS: &str = "{class}";

/// A command that starts a VM with a class path and a main class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmCommand(Vec<OsString>);

impl VmCommand {
    /// Returns that of HotSpot's interpreter: of `home`, or the one in the path.
    #[must_use]
    pub fn hotspot(home: Option<&Path>) -> Self {
        let java = home.map_or_else(|| "java".into(), |home| home.join("bin/java").into());
        let arguments = ["-Xint", "-cp", CLASS_PATH, CLASS].map(OsString::from);
        Self([java].into_iter().chain(arguments).collect())
    }

    /// Parses a command with the placeholders `{classpath}` and `{class}`, separated by spaces.
    ///
    /// # Errors
    ///
    /// It is empty or lacks a placeholder.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |missing| Error::Command {
            command: text.to_owned(),
            missing,
        };
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        if words.is_empty() {
            return Err(wrong("program"));
        }
        for placeholder in [CLASS_PATH, CLASS] {
            if !text.contains(placeholder) {
                return Err(wrong(placeholder));
            }
        }
        Ok(Self(words))
    }

    /// Returns the command with a class path and a main class.
    pub(crate) fn with(&self, class_path: &Path, class: &str) -> Command {
        let class_path = class_path.to_string_lossy();
        let mut words = self.0.iter().map(|word| {
            word.to_str().map_or_else(
                || word.clone(),
                |word| {
                    word.replace(CLASS_PATH, &class_path)
                        .replace(CLASS, class)
                        .into()
                },
            )
        });
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    }
}

impl std::fmt::Display for VmCommand {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<_> = self.0.iter().map(|word| word.to_string_lossy()).collect();
        to.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_needs_both_placeholders() {
        let command = VmCommand::parse("vm --int -cp {classpath}:x {class}").unwrap();
        let command = command.with(Path::new("/a b"), "Main");
        assert_eq!(command.get_program(), "vm");
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["--int", "-cp", "/a b:x", "Main"]);
        for wrong in ["", "java {class}", "java {classpath}"] {
            assert!(VmCommand::parse(wrong).is_err(), "{wrong}");
        }
    }
}
