//! How is a VM started?

use crate::error::{Error, Result};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

const CLASS_PATH: &str = "{classpath}";
const CLASS: &str = "{class}";
const DEX: &str = "{dex}";
const LIBRARY: &str = "{library}";
/// The name of a program's dex file below the class path.
pub(crate) const DEX_FILE: &str = "classes.dex";

/// A command that starts a VM with a program and its main class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmCommand(Vec<OsString>);

/// The format of a VM's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeFormat {
    /// Class files of Java.
    Class,
    /// Dex files.
    Dex,
}

/// An interpreter of ART.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtInterpreter {
    /// Android 11's: mterp.
    Art11,
    /// Android 14's: nterp.
    Art14,
    /// Android 14's for methods that nterp does not execute, written as a switch.
    Art14Switch,
}

impl VmCommand {
    /// Returns that of HotSpot's interpreter: of `home`, or the one in the path.
    #[must_use]
    pub fn hotspot(home: Option<&Path>) -> Self {
        let java = home.map_or_else(|| "java".into(), |home| home.join("bin/java").into());
        let arguments = ["-Xint", "-cp", CLASS_PATH, CLASS].map(OsString::from);
        Self([java].into_iter().chain(arguments).collect())
    }

    /// Returns that of an interpreter of ART, which `artvm` starts.
    #[must_use]
    pub fn art(artvm: &Path, interpreter: ArtInterpreter) -> Self {
        let options: &[&str] = match interpreter {
            ArtInterpreter::Art11 => &["--art", "11"],
            ArtInterpreter::Art14 => &["--art", "14"],
            ArtInterpreter::Art14Switch => &["--art", "14", "--int"],
        };
        let program = ["--no-dim", "--name", "calibrate", "--lib", LIBRARY];
        let dex = ["--dex", DEX, "--", CLASS, "serve"];
        let arguments = options.iter().chain(&program).chain(&dex);
        let arguments = arguments.map(OsString::from);
        Self([artvm.into()].into_iter().chain(arguments).collect())
    }

    /// Parses a command with the placeholders `{classpath}` and `{class}`, or with `{dex}`, `{library}` and `{class}`, separated by spaces.
    ///
    /// # Errors
    ///
    /// It is empty or lacks a placeholder.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |missing| Error::Command {
            command: text.to_owned(),
            missing,
        };
        let command = Self(text.split_whitespace().map(OsString::from).collect());
        if command.0.is_empty() {
            return Err(wrong("program"));
        }
        let needed: &[&str] = match command.format() {
            CodeFormat::Class => &[CLASS_PATH, CLASS],
            CodeFormat::Dex => &[LIBRARY, CLASS],
        };
        match needed.iter().find(|one| !text.contains(**one)) {
            Some(missing) => Err(wrong(missing)),
            None => Ok(command),
        }
    }

    /// Returns the format of the VM's code: dex files if the command has a place for one.
    #[must_use]
    pub fn format(&self) -> CodeFormat {
        let is_dex = |word: &OsString| word.to_string_lossy().contains(DEX);
        match self.0.iter().any(is_dex) {
            true => CodeFormat::Dex,
            false => CodeFormat::Class,
        }
    }

    /// Returns the command with a class path, a main class, and a library of JNI, which is an argument of the class unless it has a placeholder.
    pub(crate) fn with(&self, class_path: &Path, class: &str, library: Option<&Path>) -> Command {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let replaced = [
            (CLASS_PATH, path(class_path)),
            (CLASS, class.to_owned()),
            (DEX, path(&class_path.join(DEX_FILE))),
            (LIBRARY, library.map(path).unwrap_or_default()),
        ];
        let mut words = self.0.iter().map(|word| {
            let Some(text) = word.to_str() else {
                return word.clone();
            };
            let replace = |text: String, (from, to): &(&str, String)| text.replace(from, to);
            replaced.iter().fold(text.to_owned(), replace).into()
        });
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        if self.format() == CodeFormat::Class {
            command.args(library);
        }
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
        assert_eq!(command.format(), CodeFormat::Class);
        let command = command.with(Path::new("/a b"), "Main", None);
        assert_eq!(command.get_program(), "vm");
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["--int", "-cp", "/a b:x", "Main"]);
        for wrong in ["", "java {class}", "java {classpath}", "vm {dex} {class}"] {
            assert!(VmCommand::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_vm_of_dex_files_has_their_library() {
        let command = VmCommand::art(Path::new("/b/artvm"), ArtInterpreter::Art14Switch);
        assert_eq!(command.format(), CodeFormat::Dex);
        assert_eq!(VmCommand::parse(&command.to_string()).unwrap(), command);
        let command = command.with(Path::new("/d"), "Main", Some(Path::new("/l.so")));
        let arguments: Vec<_> = command.get_args().collect();
        let expected = "--art 14 --int --no-dim --name calibrate --lib /l.so --dex /d/classes.dex -- Main serve";
        assert_eq!(arguments.join(std::ffi::OsStr::new(" ")), expected);
    }
}
