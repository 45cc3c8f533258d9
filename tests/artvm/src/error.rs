//! What can go wrong in starting the VM, and what would fix it.

use std::path::PathBuf;

/// Every failure of artvm, each with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that was named, or is expected beside the executable, cannot be read.
    #[error("{path}: {source}{hint}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
        /// How to get the file; empty, or beginning with a semicolon.
        hint: &'static str,
    },
    /// A `--dex` file is neither a dex file nor an archive of them.
    #[error(
        "{0}: neither a dex file nor a zip archive (assemble smali with `smali assemble -o {0} DIR`)"
    )]
    NotDex(PathBuf),
    /// libart separates the files of its class path with colons.
    #[error(
        "{0}: the path of a dex file may not contain a colon (libart's class path has no escape); rename or link it"
    )]
    Colon(PathBuf),
    /// A string with a NUL byte inside was to be handed to C.
    #[error("{0:?} contains a NUL byte")]
    Nul(String),
    /// libart is not an ELF file with a build-id.
    #[error(
        "{path}: no build-id can be read: {reason}; give Debian's libart.so.0 with --libart, or install android-libart"
    )]
    NoBuildId {
        /// The file taken for libart.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// libart is another build than those the boot class path was measured on.
    #[error(
        "{path}: unknown libart build\n  its build-id: {found}\n  known here:   {known}\n\
         its demands on the boot class path are unmeasured and it would abort; take {package}"
    )]
    UnknownBuild {
        /// The file.
        path: PathBuf,
        /// Its build-id in hexadecimal.
        found: String,
        /// The build-id known for this architecture.
        known: &'static str,
        /// The package with that build.
        package: &'static str,
    },
    /// A function of libart that is to be mended in memory is another one, or cannot be written to.
    #[error("libart's {function} cannot be mended: {reason}")]
    #[cfg_attr(target_arch = "arm", expect(dead_code))]
    Repair {
        /// The function.
        function: String,
        /// Why not.
        reason: String,
    },
    /// The dynamic linker refused a library or did not find a symbol.
    #[error("{what}: {message}{hint}")]
    Link {
        /// The library or symbol.
        what: String,
        /// The dynamic linker's words.
        message: String,
        /// How to get the library; empty, or beginning with a semicolon.
        hint: &'static str,
    },
    /// The VM runs, but not the compiled code that it was to run.
    #[error(
        "{0}: ART does not use this code (missing, or of other dex files than those of today): write it again with \
         tests/art11/compile.sh; ART's reason is in its log, with ANDROID_LOG_TAGS='*:w'"
    )]
    CodeRefused(PathBuf),
    /// `JNI_CreateJavaVM` failed.
    #[error(
        "JNI_CreateJavaVM failed with {0}; libart's reason stands above; --vm-option options are passed on unchecked"
    )]
    CreateVm(i32),
    /// A class or method that was asked for is not in the dex files, or does not load.
    #[error("{what} not found or not loadable (look at `dexdump FILE`):\n{thrown}")]
    Missing {
        /// What was looked for.
        what: String,
        /// The exception that the VM threw.
        thrown: String,
    },
    /// A native library was refused by the VM.
    #[error("{path}: the VM did not load the library: {message}")]
    Library {
        /// The library.
        path: PathBuf,
        /// The VM's words.
        message: String,
    },
    /// The process's command line could not be replaced.
    #[error("the command line cannot be set to {name:?}: {reason}")]
    CommandLine {
        /// The package's name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// One of the runtime's hooks around a fork threw.
    #[error("zygote: the hook {name} threw:\n{thrown}")]
    Hook {
        /// The hook.
        name: String,
        /// The exception.
        thrown: String,
    },
    /// The zygote has threads that a child would miss.
    #[error(
        "zygote: only one thread may run at a fork, but these do: {0}; an agent or library that starts threads must do so after the fork"
    )]
    Threads(String),
    /// A system call of the zygote failed.
    #[error("zygote: {what}: {source}")]
    Zygote {
        /// The call.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}
