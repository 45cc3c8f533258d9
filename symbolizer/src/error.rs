//! Errors of reading and writing symbols.

use std::path::{Path, PathBuf};

/// Errors of reading and writing symbols.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A dex file violates its format.
    #[error("dex file: {field} at offset {offset:#x}: {problem}")]
    Dex {
        /// The field or item, by its name in the dex format's documentation.
        field: &'static str,
        /// File offset of the invalid field.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A class file of Java violates its format.
    #[error("class file: {field} at offset {offset:#x}: {problem}")]
    Class {
        /// The field, by its name in the Java Virtual Machine Specification.
        field: &'static str,
        /// File offset of the invalid field.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file that should hold dex files violates its format, or holds none.
    #[error("{file}: {field} at offset {offset:#x}: {problem}")]
    Container {
        /// The file, or the name that it was given.
        file: String,
        /// The field or item, by its name in the format's documentation.
        field: &'static str,
        /// File offset of the invalid field.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// An ELF file violates its format.
    #[error("{file}: not a usable ELF file: {part}: {problem}")]
    Elf {
        /// The file, or the name that it was given.
        file: String,
        /// The part that was being read.
        part: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A file is not a mapping of renamed classes and members, as R8 and ProGuard write it.
    #[error("mapping file, line {line}: {problem}: give the mapping.txt of the app's own build")]
    Mapping {
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A line of a kernel symbol table violates its format.
    #[error("kernel symbols, line {line}: {problem}")]
    Kernel {
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The kernel shows its symbols, but hides their addresses.
    #[error(
        "the kernel hides its symbols' addresses from this process: run as root or with CAP_SYSLOG, \
         or set kernel.kptr_restrict to 0 and kernel.perf_event_paranoid to 1"
    )]
    KernelHidden,
    /// What a program publishes about its generated code violates its format.
    #[error("{what}, at {offset:#x}: {problem}")]
    Jit {
        /// What was being read: a jitdump file, the GDB JIT interface.
        what: &'static str,
        /// Offset in the file, or address in the process.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// A substitute ELF file cannot be made from the input.
    #[error("substitute ELF file: {problem}")]
    Substitute {
        /// The reason.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted operation, as a verb.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns a function for `map_err` that makes an error of a file operation.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            path,
            doing,
            source,
        }
    }
}
