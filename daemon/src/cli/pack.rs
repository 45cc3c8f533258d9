//! The arguments of `varid pack`.

use super::selection::InputArgs;
use clap::Args;
use std::path::PathBuf;
use varid_report::NameOptions;

/// `varid pack`.
#[derive(Debug, Args)]
pub struct PackArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// The file, a tar archive compressed by gzip [default: the session's name with .tar.gz]. -: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The recorded machine's file system is below DIR.
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    /// Recorded files are somewhere below DIR, found by build-id. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
}

impl PackArgs {
    /// The options for finding the recorded files.
    pub fn names(&self) -> NameOptions {
        NameOptions {
            symfs: self.symfs.clone(),
            symbols: self.symbols.clone(),
            kept: Some(crate::paths::device_symbols()),
            ..NameOptions::default()
        }
    }
}
