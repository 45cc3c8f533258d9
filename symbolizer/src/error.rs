//! What can go wrong while symbols are read or written.

use std::path::{Path, PathBuf};

/// What can go wrong while symbols are read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A dex file breaks its format.
    #[error("dex file: {field} at offset {offset:#x}: {problem}")]
    Dex {
        /// The field or item, as the dex format's documentation names it.
        field: &'static str,
        /// Offset in the file of the field that is wrong.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file that holds dex files breaks its format, or holds none.
    #[error("{file}: {field} at offset {offset:#x}: {problem}")]
    Container {
        /// The file, or the name it was given.
        file: String,
        /// The field or item, as the format's documentation names it.
        field: &'static str,
        /// Offset in the file of the field that is wrong.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// An ELF file breaks its format.
    #[error("{file}: not a usable ELF file: {part}: {problem}")]
    Elf {
        /// The file, or the name it was given.
        file: String,
        /// The part that was being read.
        part: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A file is not what R8 or ProGuard write about the names that they have changed.
    #[error("mapping file, line {line}: {problem}: give the mapping.txt of the app's own build")]
    Mapping {
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A line of a kernel symbol table breaks its format.
    #[error("kernel symbols, line {line}: {problem}")]
    Kernel {
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The kernel shows its symbols with their addresses hidden.
    #[error(
        "the kernel hides its symbols' addresses from this process: run as root or with CAP_SYSLOG, \
         or set kernel.kptr_restrict to 0 and kernel.perf_event_paranoid to 1"
    )]
    KernelHidden,
    /// What a program says about the code that it makes breaks its format.
    #[error("{what}, at {offset:#x}: {problem}")]
    Jit {
        /// What was being read: a jitdump file, the GDB JIT interface.
        what: &'static str,
        /// Offset in the file, or address in the process.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// A substitute ELF file cannot be made from what was given.
    #[error("substitute ELF file: {problem}")]
    Substitute {
        /// Why not.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as a verb.
        doing: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl Error {
    /// For `map_err` on what touches the file system.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            path,
            doing,
            source,
        }
    }
}
