//! `varid calibrate`: measures what each bytecode costs on a VM.

use crate::cli::{CalibrateArgs, VmArg};
use crate::output;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use varid_calibrate::{
    Clock, Error, Launch, Program, Provenance, Selection, Setup, Summary, VmCommand, java_program,
    measure, solve, write_program, write_table,
};

/// The library with the processor's counter.
const COUNTER: &str = "libvarid_calibrate_counter.so";
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
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let vm = match &args.vm {
        VmArg::Hotspot => VmCommand::hotspot(home.as_deref()),
        VmArg::Command(command) => command.clone(),
    };
    let counter = find_counter();
    if counter.is_none() {
        tracing::warn!("{COUNTER} is missing: there is no second clock");
        if clock == Clock::Counter {
            bail!("{COUNTER} is missing beside the program");
        }
    }
    let mut clocks = vec![clock];
    clocks.extend(counter.is_some().then_some(clock.other()));
    let launches = args.launches.unwrap_or(match clock {
        Clock::Millis => COARSE_LAUNCHES,
        Clock::Nano | Clock::Counter => LAUNCHES,
    });
    let time = args.time.mul_f64(MEASUREMENT);
    let attempt = |clocks: &[Clock]| -> anyhow::Result<(Program, Vec<Launch>)> {
        let program = java_program(&selection, clocks)?;
        let library = counter
            .as_deref()
            .filter(|_| clocks.contains(&Clock::Counter));
        let measured = measure_in_folder(&program, &vm, library, launches, time)?;
        Ok((program, measured))
    };
    let (program, measured) = match attempt(&clocks) {
        // A VM may have no JNI.
        Err(error) if clock != Clock::Counter && clocks.len() > 1 && has_ended(&error) => {
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
        target: match &args.vm {
            VmArg::Hotspot => "hotspot-interpreter".to_owned(),
            VmArg::Command(_) => "calibrated".to_owned(),
        },
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

/// Whether a VM has ended by itself.
fn has_ended(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Ended(_)))
}

/// Measures a program whose files are in a temporary folder.
fn measure_in_folder(
    program: &Program,
    vm: &VmCommand,
    counter: Option<&Path>,
    launches: u8,
    time: Duration,
) -> anyhow::Result<Vec<Launch>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    write_program(program, folder.path())?;
    let setup = Setup {
        vm,
        class_path: folder.path(),
        counter,
        launches: launches.into(),
        time,
    };
    let measured = measure(program, &setup, |number| {
        tracing::info!("VM {} of {launches}", number.saturating_add(1));
    });
    measured.with_context(|| format!("cannot measure '{vm}'"))
}

/// Returns the library: beside the program, as it is built and unpacked, or where it is installed.
fn find_counter() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?;
    let places = [".", "deps", "../lib/varid"].map(|place| beside.join(place).join(COUNTER));
    let found = places.into_iter().find(|place| place.exists())?;
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
