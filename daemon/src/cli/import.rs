//! The arguments of `varid import`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use varid_import::ImportFormat;

/// `varid import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The recording, also compressed with gzip or zstd; -: standard input.
    pub file: PathBuf,
    /// The session's folder [default: a new one among the sessions].
    #[arg(short, long, value_name = "SESSION")]
    pub output: Option<PathBuf>,
    /// What the file is [default: found by its content].
    #[arg(short, long, value_parser = format_parser())]
    pub format: Option<&'static ImportFormat>,
    /// Do not take the names that simpleperf has written down: those of files are taken, with lines and inlined functions, as
    /// 'varid report --symfs' and '--symbols' find them.
    #[arg(long)]
    pub without_names: bool,
    /// The first entry of a folded stack is a frame, not the thread's name.
    #[arg(long)]
    pub first_is_frame: bool,
}

/// Parses the name of a format.
fn format_parser() -> impl TypedValueParser<Value = &'static ImportFormat> {
    let named = |format: &&ImportFormat| PossibleValue::new(format.name).help(format.about);
    let names = PossibleValuesParser::new(ImportFormat::all().iter().map(named));
    names.try_map(|name| ImportFormat::named(&name).ok_or("no format has this name"))
}
