//! Under which C library does the VM run? Where libart needs another than this machine's, artvm starts anew under its
//! dynamic linker.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// The dynamic linker's name in a folder of libraries.
#[cfg(target_arch = "x86_64")]
const NAME: &str = "ld-linux-x86-64.so.2";
#[cfg(target_arch = "aarch64")]
const NAME: &str = "ld-linux-aarch64.so.1";
#[cfg(target_arch = "arm")]
const NAME: &str = "ld-linux-armhf.so.3";

/// This program's file.
pub fn executable() -> Result<PathBuf, Error> {
    let started = std::env::current_exe().map_err(|source| Error::File {
        path: "/proc/self/exe".into(),
        source,
        hint: "",
    })?;
    // Started by its dynamic linker, that is what runs; see `enter`.
    let own = std::env::args_os().next().map(PathBuf::from);
    match own {
        Some(own) if started.file_name() == Some(NAME.as_ref()) => Ok(own),
        _ => Ok(started),
    }
}

/// Returns if this process runs under the dynamic linker of `libraries`; else it becomes one that does.
pub fn enter(libraries: &Path, executable: &Path, hint: &'static str) -> Result<(), Error> {
    let linker = libraries.join(NAME);
    let fail = |source| Error::File {
        path: linker.clone(),
        source,
        hint,
    };
    let started = std::fs::read_link("/proc/self/exe").map_err(fail)?;
    if linker.canonicalize().map_err(fail)? == started {
        return Ok(());
    }
    let source = Command::new(&linker)
        .arg("--library-path")
        .arg(libraries)
        .arg(executable)
        .args(std::env::args_os().skip(1))
        .exec();
    Err(fail(source))
}
