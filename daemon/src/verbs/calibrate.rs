//! `varid calibrate`: measures what each bytecode costs on a VM.

use crate::cli::{CalibrateArgs, VmArg};
use crate::output;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use varid_calibrate::{
    ArtInterpreter, Clock, CodeFormat, Error, Launch, Program, Provenance, Selection, Setup,
    Summary, VmCommand, dex_program, java_program, measure, solve, write_program, write_table,
};

/// The library with the processor's counter, which also reads the requests of a program of dex code.
const LIBRARY: &str = "libvarid_calibrate_counter.so";
/// The program that runs dex files in ART.
const ARTVM: &str = "artvm";
/// The number of VMs by a fine clock, and by one for which each VM takes a long loop of each unit.
const LAUNCHES: u8 = 8;
const COARSE_LAUNCHES: u8 = 3;
/// The share of the time that the measurement itself takes.
const MEASUREMENT: f64 = 0.875;

/// Measures, prints a summary, writes the table.
pub fn run(args: &CalibrateArgs) -> anyhow::Result<ExitCode> {
    let clock = Clock::from(args.clock);
    let selection = match args.only.is_empty() {
        true => Selection::All,
        false => Selection::Only(args.only.clone()),
    };
    let vm = vm_command(&args.vm);
    let library = find_library();
    if library.is_none() {
        if clock == Clock::Counter || vm.format() == CodeFormat::Dex {
            bail!("{LIBRARY} is missing beside the program");
        }
        tracing::warn!("{LIBRARY} is missing: there is no second clock");
    }
    let mut clocks = vec![clock];
    clocks.extend(library.is_some().then_some(clock.other()));
    let launches = args.launches.unwrap_or(match clock {
        Clock::Millis => COARSE_LAUNCHES,
        Clock::Nano | Clock::Counter => LAUNCHES,
    });
    let time = args.time.mul_f64(MEASUREMENT);
    let attempt = |clocks: &[Clock]| -> anyhow::Result<(Program, Vec<Launch>)> {
        let (program, needs_library) = match vm.format() {
            CodeFormat::Class => (
                java_program(&selection, clocks)?,
                clocks.contains(&Clock::Counter),
            ),
            CodeFormat::Dex => (dex_program(&selection, clocks)?, true),
        };
        let library = library.as_deref().filter(|_| needs_library);
        let measured = measure_in_folder(&program, &vm, library, launches, time)?;
        Ok((program, measured))
    };
    let may_lack_jni = vm.format() == CodeFormat::Class && clock != Clock::Counter;
    let (program, measured) = match attempt(&clocks) {
        Err(error) if may_lack_jni && clocks.len() > 1 && has_ended(&error) => {
            tracing::warn!("{error:#}: once more, without a second clock");
            clocks.truncate(1);
            attempt(&clocks)?
        }
        attempted => attempted?,
    };

    let solved = solve(&program, &measured, clock);
    let second = clocks
        .get(1)
        .map(|second| solve(&program, &measured, *second));
    let summary = Summary::new(
        &solved,
        second.as_ref(),
        &program.imperative,
        measured.len(),
    );
    let provenance = Provenance {
        target: target_name(&args.vm).to_owned(),
        format: vm.format(),
        vm: vm.to_string(),
        machine: machine(),
        agreement: summary.agreement().copied(),
    };
    fs::write(&args.output, write_table(&solved.in_programs, &provenance))
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    output::text(&summary.to_string())?;
    if let Some(noise) = summary.noise() {
        output::notice(&format!("varid: {noise}"));
    }
    output::notice(&format!(
        "varid: the costs are in {}",
        args.output.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the command that starts a VM. artvm is beside the program, or in the path.
fn vm_command(vm: &VmArg) -> VmCommand {
    match vm {
        VmArg::Hotspot => {
            let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
            VmCommand::hotspot(home.as_deref())
        }
        VmArg::Art(interpreter) => {
            let beside = find_beside(&["."], ARTVM);
            let artvm = beside.unwrap_or_else(|| PathBuf::from(ARTVM));
            VmCommand::art(&artvm, *interpreter)
        }
        VmArg::Command(command) => command.clone(),
    }
}

/// Returns the name of the table's target.
const fn target_name(vm: &VmArg) -> &'static str {
    match vm {
        VmArg::Hotspot => "hotspot-interpreter",
        VmArg::Art(ArtInterpreter::Art11) => "art11-interpreter",
        VmArg::Art(ArtInterpreter::Art14) => "art14-interpreter",
        VmArg::Art(ArtInterpreter::Art14Switch) => "art14-switch-interpreter",
        VmArg::Command(_) => "calibrated",
    }
}

/// Whether a VM has ended by itself.
fn has_ended(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Ended(_)))
}

/// Measures a program whose files are in a temporary folder.
fn measure_in_folder(
    program: &Program,
    vm: &VmCommand,
    library: Option<&Path>,
    launches: u8,
    time: Duration,
) -> anyhow::Result<Vec<Launch>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    write_program(program, folder.path())?;
    let setup = Setup {
        vm,
        class_path: folder.path(),
        library,
        launches: launches.into(),
        time,
    };
    let measured = measure(program, &setup, |number| {
        tracing::info!("VM {} of {launches}", number.saturating_add(1));
    });
    measured.with_context(|| format!("cannot measure '{vm}'"))
}

/// Returns the library: beside the program, as it is built and unpacked, or where it is installed.
fn find_library() -> Option<PathBuf> {
    find_beside(&[".", "deps", "../lib/varid"], LIBRARY)
}

/// Finds a file in folders that are named as seen from the program's.
fn find_beside(folders: &[&str], name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?;
    let mut places = folders.iter().map(|folder| beside.join(folder).join(name));
    let found = places.find(|place| place.exists())?;
    std::path::absolute(found).ok()
}

/// Returns the name of the machine's processor.
fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}
