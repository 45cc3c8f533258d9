//! `varid symbols`: what a file's addresses mean, and the files that tell other tools.

mod answer;
mod convert;
mod image;
mod list;

use crate::cli::SymbolsArgs;
use crate::{output, output_file};
use image::InputFile;
use std::process::ExitCode;
use varid_symbolizer::elf::DebugFiles;

/// Lists, answers or converts.
pub fn run(args: &SymbolsArgs) -> anyhow::Result<ExitCode> {
    let mut errors = Errors::default();
    let debug_files = args
        .symbols
        .iter()
        .fold(DebugFiles::system(), |files, folder| {
            files.with_folder(folder)
        });
    let files: Vec<InputFile> = args
        .files
        .iter()
        .map(|file| InputFile::new(file, &debug_files))
        .collect();
    if !args.at.is_empty() {
        answer::run(&files, &args.at, args.json, &mut errors)?;
    } else if args.elf.is_some() || args.sym.is_some() {
        if args.elf.as_deref().is_some_and(output_file::is_terminal) {
            anyhow::bail!("an ELF file is not text: name a file with --elf FILE");
        }
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
    /// Reports an error.
    fn add(&mut self, error: &anyhow::Error) {
        output::message(&format!("varid: {}", output::reason(error.as_ref())));
        self.0 = self.0.saturating_add(1);
    }

    /// The value; None: an error, which is reported.
    fn report<T>(&mut self, result: anyhow::Result<T>) -> Option<T> {
        result.inspect_err(|error| self.add(error)).ok()
    }
}
