//! `varid estimate` of a program: executes it here, and says what it takes on the processor that it was compiled for.

mod session;
mod summary;

use super::check_new_folder;
use crate::cli::{EstimateArgs, ProgramArgs, SummaryFormat};
use crate::output;
use anyhow::{Context, bail, ensure};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use varid_machine::{Fault, Interpreter, Limits, Machine, Stop, Streams, Timing};
use varid_processor::{Processor, Setting};
use varid_riscv::Image;
use varid_symbolizer::elf::{DebugFiles, ElfSource};

/// The first bytes of an ELF file.
const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
/// The most bytes of a program's file.
const MAX_FILE: u64 = 1 << 30;

/// Returns true if it is a program rather than a session.
pub fn is_program(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == ELF_MAGIC
}

/// Executes the program, prints what it takes, and writes a session if one is asked for.
///
/// The exit code is 0 if the program has ended by itself, whatever its status is; the summary has that.
pub fn run(
    args: &EstimateArgs,
    target: &str,
    settings: &[Setting],
    path: &Path,
) -> anyhow::Result<ExitCode> {
    let processor = Processor::named(target, settings)?;
    refuse_options_of_sessions(args)?;
    if let Some(folder) = &args.output {
        check_new_folder(folder)?;
    }
    let shown = path.display();
    let size = fs::metadata(path).with_context(|| shown.to_string())?.len();
    ensure!(size <= MAX_FILE, "{shown}: a program of more than 1 GiB");
    let file = fs::read(path).with_context(|| shown.to_string())?;
    let image = Image::parse(&file).with_context(|| shown.to_string())?;
    let machine = load(&image, path, &args.program, args.summary)?;
    let limit = args.program.limit.unwrap_or(u64::MAX);
    let mut interpreter = Interpreter::new(machine, limit);
    let mut timing = Timing::new(&processor);
    let stop = varid_translate::run(&mut interpreter, &mut timing);
    let flushed = interpreter.flush();
    flushed.context("cannot write what the program has printed")?;
    let end = match stop {
        Stop::Exit(status) => summary::End::Exit(status),
        Stop::Limit => summary::End::Limit(limit),
        Stop::Fault(fault) => bail!("{shown}: {}", describe(&fault, path)),
    };
    let counts = interpreter.counts();
    summary::Summary::new(&processor, counts, &timing, end).print(args.summary)?;
    if let Some(folder) = &args.output {
        let program = session::Program {
            path,
            file: &file,
            arguments: &args.program.arguments,
        };
        session::write(folder, &program, &processor, counts, &timing, end)?;
        let folder = folder.display();
        output::notice(&format!("varid: 'varid report {folder}' shows it"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses options that need a session.
fn refuse_options_of_sessions(args: &EstimateArgs) -> anyhow::Result<()> {
    let given = [
        ("--sweep", !args.sweep.is_empty()),
        ("--within", args.within.is_some()),
        ("--assume-cache", args.assume_cache.is_some()),
        ("--class-path", !args.class_path.is_empty()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!("{option} is for sessions; this is a program"),
        None => Ok(()),
    }
}

fn load(
    image: &Image,
    path: &Path,
    args: &ProgramArgs,
    format: SummaryFormat,
) -> anyhow::Result<Machine> {
    let mut arguments = vec![path.as_os_str().as_bytes()];
    arguments.extend(args.arguments.iter().map(|argument| argument.as_bytes()));
    // Standard output is the summary's, if programs read it.
    let output: Box<dyn Write> = match format {
        SummaryFormat::Json => Box::new(io::stderr()),
        SummaryFormat::Text => Box::new(BufWriter::new(io::stdout())),
    };
    let streams = Streams {
        input: Box::new(io::stdin()),
        output,
        error: Box::new(io::stderr()),
    };
    let limits = Limits {
        memory: args.memory,
        folder: args.files.as_deref(),
        clock_hz: args.clock,
    };
    let loaded = Machine::load(image, &arguments, streams, &limits);
    loaded.with_context(|| path.display().to_string())
}

/// Returns a fault with the function and the line of its instruction.
fn describe(fault: &Fault, path: &Path) -> String {
    let source = ElfSource::open(path, &DebugFiles::none()).ok();
    let frames = source.as_ref().map(|source| source.frames(fault.pc.get()));
    let frame = frames.into_iter().flatten().next();
    let place = frame.map(|frame| {
        let line = frame.location.map(|location| {
            let (file, line) = (location.file, location.line);
            format!(", {file}:{line}")
        });
        format!(" ({}{})", frame.function, line.unwrap_or_default())
    });
    let place = place.unwrap_or_default();
    let text = format!("{}{place}: {}", fault.pc, fault.cause);
    varid_recording::terminal::one_line(&text)
}
