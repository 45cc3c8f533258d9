//! `varid symbols`: resolves addresses in files, and writes symbol files for other tools.

mod answer;
mod convert;
mod image;
mod list;
mod trace;

use crate::cli::{SymbolsArgs, bad_usage};
use crate::{output, output_file};
use anyhow::Context;
use image::InputFile;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use varid_symbolizer::elf::DebugFiles;
use varid_symbolizer::retrace::Mapping;

/// Lists, answers, converts or retraces.
pub fn run(args: &SymbolsArgs) -> anyhow::Result<ExitCode> {
    let mut errors = Errors::default();
    match &args.mapping {
        Some(path) => {
            let mapping = Rc::new(read_mapping(path)?);
            let (traces, code) = trace::split(&args.files);
            if code.is_empty() {
                if args.json {
                    bad_usage(
                        "symbols",
                        "--json is of FILEs with code: a stack trace stays text",
                    );
                }
                trace::run(&mapping, &traces, &args.at, &mut errors)?;
            } else {
                trace::run(&mapping, &traces, &[], &mut errors)?;
                of_code(args, &code, Some(&mapping), &mut errors)?;
            }
        }
        None => of_code(args, &args.files, None, &mut errors)?,
    }
    Ok(if errors.0 == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn read_mapping(path: &Path) -> anyhow::Result<Mapping> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("{shown}: cannot read"))?;
    Mapping::parse(bytes).with_context(|| shown.to_string())
}

/// Processes files with code.
fn of_code(
    args: &SymbolsArgs,
    files: &[PathBuf],
    mapping: Option<&Rc<Mapping>>,
    errors: &mut Errors,
) -> anyhow::Result<()> {
    let debug_files = args
        .symbols
        .iter()
        .fold(DebugFiles::system(), |files, folder| {
            files.with_folder(folder)
        });
    let files: Vec<InputFile> = files
        .iter()
        .map(|file| InputFile::new(file, &debug_files, mapping.cloned()))
        .collect();
    if !args.at.is_empty() {
        return answer::run(&files, &args.at, args.json, errors);
    }
    if args.elf.is_none() && args.sym.is_none() {
        return list::run(&files, args.json, errors);
    }
    if args.elf.as_deref().is_some_and(output_file::is_terminal) {
        anyhow::bail!("an ELF file is not text: name a file with --elf FILE");
    }
    convert::run(&files, args.elf.as_deref(), args.sym.as_deref(), errors);
    Ok(())
}

/// The number of errors. Each was reported at once, in one line, and the processing continued.
#[derive(Default)]
pub struct Errors(u64);

impl Errors {
    /// Reports an error.
    fn add(&mut self, error: &anyhow::Error) {
        output::message(&format!("varid: {}", output::reason(error.as_ref())));
        self.0 = self.0.saturating_add(1);
    }

    /// Returns the value, or None after reporting the error.
    fn report<T>(&mut self, result: anyhow::Result<T>) -> Option<T> {
        result.inspect_err(|error| self.add(error)).ok()
    }
}
