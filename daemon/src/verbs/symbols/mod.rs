//! `varid symbols`: what a file's addresses mean, and the files that tell other tools.

mod answer;
mod convert;
mod image;
mod list;

use super::out;
use clap::Args;
use image::Wanted;
use std::path::PathBuf;
use std::process::ExitCode;
use varid_symbolizer::elf::DebugFiles;

/// `varid symbols`.
#[derive(Debug, Args)]
pub struct SymbolsArgs {
    /// Dex files, APKs and other archives and containers of them, ELF files. app.apk!classes2.dex and app.apk!lib/x86_64/libapp.so are in an archive.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Say what is at these addresses, in hexadecimal: offsets in the dex file, or an ELF file's own. -: read them from standard input.
    #[arg(long, value_name = "ADDRESS", num_args = 1.., conflicts_with_all = ["elf", "sym"])]
    at: Vec<String>,
    /// Write an ELF file that tells perf, gdb and addr2line the methods and lines of a dex file; of several: a folder of them.
    #[arg(long, value_name = "OUT")]
    elf: Option<PathBuf>,
    /// Write the table of a dex file's methods as text, one a line; of several: a folder of them.
    #[arg(long, value_name = "OUT")]
    sym: Option<PathBuf>,
    /// Debug information of ELF files is somewhere below DIR, found by build-id; beside where the system keeps it. May be repeated.
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,
    /// For programs.
    #[arg(long)]
    json: bool,
}

/// Lists, answers or converts.
pub fn run(args: &SymbolsArgs) -> anyhow::Result<ExitCode> {
    let mut errors = Errors::default();
    let debug_files = args
        .symbols
        .iter()
        .fold(DebugFiles::system(), |places, folder| {
            places.with_folder(folder)
        });
    let files: Vec<Wanted> = args
        .files
        .iter()
        .map(|file| Wanted::new(file, &debug_files))
        .collect();
    if !args.at.is_empty() {
        answer::run(&files, &args.at, args.json, &mut errors)?;
    } else if args.elf.is_some() || args.sym.is_some() {
        convert::run(
            &files,
            args.elf.as_deref(),
            args.sym.as_deref(),
            &mut errors,
        );
    } else {
        list::run(&files, args.json, &mut errors)?;
    }
    Ok(if errors.0 == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// How many things went wrong; each was said at once, in a line, and the rest went on.
#[derive(Default)]
pub struct Errors(u64);

impl Errors {
    /// Says what went wrong.
    fn add(&mut self, error: &anyhow::Error) {
        out::message(&format!("varid: {}", out::reason(error)));
        self.0 = self.0.saturating_add(1);
    }

    /// The value, or none with its error said.
    fn keep<T>(&mut self, result: anyhow::Result<T>) -> Option<T> {
        result.inspect_err(|error| self.add(error)).ok()
    }
}
