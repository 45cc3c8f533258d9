//! The arguments that say what is read of a session: by `varid report` and `varid export`.

use crate::{paths, sessions};
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use varid_model::{Pid, Tid};
use varid_report::{NameOptions, Options, Pattern};

/// Which session.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// The session, by folder or by name [default: the last one].
    #[arg(value_name = "SESSION")]
    pub session: Option<PathBuf>,
    /// The same, as perf takes it: a folder, its perf.data, or a name.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "session")]
    pub input: Option<PathBuf>,
}

impl InputArgs {
    /// The session's folder.
    pub fn folder(&self) -> anyhow::Result<PathBuf> {
        match self.session.as_ref().or(self.input.as_ref()) {
            Some(named) => Ok(sessions::named(named)),
            None => sessions::last()
                .context("there is no session yet: 'varid record' or 'varid start' makes one"),
        }
    }
}

/// Which samples count.
#[derive(Debug, Args)]
pub struct SampleArgs {
    /// Only samples of this process.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Only samples of this thread.
    #[arg(long)]
    pub tid: Option<u32>,
    /// Only samples of threads whose name matches; * stands for anything.
    #[arg(long, value_name = "PATTERN")]
    pub thread: Option<String>,
}

/// Where names come from.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Functions that were compiled into their callers count for these; faster.
    #[arg(long)]
    pub no_inline: bool,
    /// Recorded files are below DIR, laid out as the recorded machine's file system.
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    /// Recorded files, or their debug information, are somewhere below DIR; found by build-id. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// The recorded kernel's vmlinux, with debug information [default: the system's].
    #[arg(long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,
    /// What R8 or ProGuard renamed in the app: its mapping.txt.
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
}

/// The same for the report's tables: samples of this event that these arguments select. Inlined functions are frames of their own
/// if `inlined`, and lines are read if `lines`.
pub fn options(
    event: Option<String>,
    samples: SampleArgs,
    names: NameArgs,
    (inlined, lines): (bool, bool),
) -> Options {
    Options {
        event,
        pid: samples.pid.map(Pid::new),
        tid: samples.tid.map(Tid::new),
        thread: samples.thread.map(Pattern::new),
        names: NameOptions {
            symfs: names.symfs,
            symbols: names.symbols,
            kept: Some(paths::device_symbols()),
            mapping: names.mapping,
            vmlinux: names.vmlinux,
            inlined: inlined && !names.no_inline,
            lines,
        },
        ..Options::default()
    }
}
