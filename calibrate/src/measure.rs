//! When is what measured?

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::program::{MethodNumber, Program, Run, Timer};
use crate::slopes::{Launch, slope};
use crate::vm_command::VmCommand;
use crate::vm_process::VmProcess;
use fastrand::Rng;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a run is executed in a round, and how many of these do not count: the first ones load classes and fill caches.
const EXECUTIONS: u32 = 10;
const WARM_UP: usize = 3;
/// The least number of rounds of a VM.
const ROUNDS: usize = 3;
/// The ticks after which a coarse clock is fine enough to plan by.
const PLANNED_TICKS: f64 = 20.0;
/// How many times longer the long run of a coarse clock is than its short one.
const LONGER: u32 = 8;

/// Where the parts of a measurement are, and how long it may take.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The VM.
    pub vm: &'a VmCommand,
    /// The folder with the program's files.
    pub class_path: &'a Path,
    /// The library with the processor's counter and the requests of a program of dex code. None: neither is used.
    pub library: Option<&'a Path>,
    /// How many VMs are started, one after the other.
    pub launches: usize,
    /// How long all that may take. Each VM measures at least a few rounds.
    pub time: Duration,
}

/// Writes a program's files below a folder.
///
/// # Errors
///
/// A file cannot be written.
pub fn write_program(program: &Program, folder: &Path) -> Result<()> {
    for file in &program.files {
        let path = folder.join(&file.path);
        let written = match path.parent() {
            Some(parent) => fs::create_dir_all(parent).and_then(|()| fs::write(&path, &file.bytes)),
            None => fs::write(&path, &file.bytes),
        };
        written.map_err(|error| Error::File { path, error })?;
    }
    Ok(())
}

/// Measures a program: each VM executes rounds, each round all runs in random order. `progress` is called before each VM with its number.
///
/// # Errors
///
/// A VM cannot be started, ends, or does not answer.
pub fn measure(
    program: &Program,
    setup: &Setup<'_>,
    mut progress: impl FnMut(usize),
) -> Result<Vec<Launch>> {
    let start = Instant::now();
    let mut timers = program.timers.clone();
    let mut launches: Vec<Launch> = Vec::new();
    for number in 0..setup.launches {
        progress(number);
        #[allow(clippy::cast_precision_loss, reason = "a few VMs")]
        let done = number.saturating_add(1) as f64 / setup.launches as f64;
        let deadline = setup.time.mul_f64(done);
        let command = setup
            .vm
            .with(setup.class_path, &program.main_class, setup.library);
        let mut vm = VmProcess::start(command)?;
        if number == 0 {
            lengthen(&mut timers, setup, &mut vm)?;
        }
        launches.push(launch(&timers, &program.clocks, &mut vm, || {
            start.elapsed() < deadline
        })?);
    }
    Ok(launches)
}

/// Measures rounds while there is time.
fn launch(
    timers: &[Timer],
    clocks: &[(Clock, MethodNumber)],
    vm: &mut VmProcess,
    has_time: impl Fn() -> bool,
) -> Result<Launch> {
    let mut random = Rng::new();
    let before = read_clocks(clocks, vm)?;
    let mut launch = Launch::default();
    // A coarse clock takes a second or more for a round, which is planned to fill the time.
    let least = match timers.iter().any(|timer| timer.clock == Clock::Millis) {
        true => 1,
        false => ROUNDS,
    };
    while launch.rounds.len() < least || has_time() {
        launch.rounds.push(round(timers, &mut random, vm)?);
    }
    let after = read_clocks(clocks, vm)?;
    let ticks: Vec<f64> = before.iter().zip(&after).map(|(a, b)| b - a).collect();
    for (clock, ns) in ticks_in_ns(clocks, &ticks)? {
        for round in &mut launch.rounds {
            for (timer, time) in timers.iter().zip(round) {
                if timer.clock == clock {
                    *time *= ns;
                }
            }
        }
    }
    Ok(launch)
}

/// Returns how long a tick of each clock is, by the ticks of all in the same time.
fn ticks_in_ns(clocks: &[(Clock, MethodNumber)], ticks: &[f64]) -> Result<Vec<(Clock, f64)>> {
    let known = clocks.iter().zip(ticks).find_map(|((clock, _), ticks)| {
        let ns = clock.tick_ns()?;
        Some(ns * ticks)
    });
    let known = known.ok_or(Error::Unsolved("the counter alone is no clock"))?;
    let all = clocks.iter().zip(ticks).map(|((clock, _), ticks)| {
        let ns = clock.tick_ns().unwrap_or(known / ticks);
        match ns.is_finite() && ns > 0.0 {
            true => Ok((*clock, ns)),
            false => Err(Error::Unsolved("the processor's counter does not advance")),
        }
    });
    all.collect()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "times of a run, or differences of them"
)]
fn read_clocks(clocks: &[(Clock, MethodNumber)], vm: &mut VmProcess) -> Result<Vec<f64>> {
    let requests: Vec<_> = clocks
        .iter()
        .map(|(_, method)| {
            let run = Run {
                method: *method,
                repetitions: 0,
            };
            (run, 1)
        })
        .collect();
    let answers = vm.time(&requests)?;
    Ok(answers.iter().map(|ticks| *ticks as f64).collect())
}

/// Measures each run of each timer, in random order. Returns ticks for each repetition.
fn round(timers: &[Timer], random: &mut Rng, vm: &mut VmProcess) -> Result<Vec<f64>> {
    let mut order: Vec<(usize, bool)> = (0..timers.len())
        .flat_map(|timer| [(timer, false), (timer, true)])
        .collect();
    random.shuffle(&mut order);
    let requests: Vec<_> = order
        .iter()
        .filter_map(|(timer, is_long)| {
            let timer = timers.get(*timer)?;
            let run = if *is_long { timer.long } else { timer.short };
            Some((run, executions(timer)))
        })
        .collect();
    let answers = vm.time(&requests)?;
    let mut answers = answers.as_slice();
    let mut times = vec![[Vec::new(), Vec::new()]; timers.len()];
    for ((timer, is_long), (_, count)) in order.iter().zip(&requests) {
        let count = usize::try_from(*count).unwrap_or(0);
        let (own, others) = answers.split_at_checked(count).unwrap_or_default();
        answers = others;
        let counted = own.get(WARM_UP..).unwrap_or(own);
        #[allow(clippy::cast_precision_loss, reason = "the time of a run")]
        let counted = counted.iter().map(|ticks| *ticks as f64).collect();
        if let Some([short, long]) = times.get_mut(*timer) {
            *(if *is_long { long } else { short }) = counted;
        }
    }
    let slopes = timers.iter().zip(&mut times);
    Ok(slopes
        .map(|(timer, [short, long])| {
            let more = timer
                .long
                .repetitions
                .saturating_sub(timer.short.repetitions);
            slope(short, long, more.into())
        })
        .collect())
}

/// How often a run is executed in a round.
const fn executions(timer: &Timer) -> u32 {
    match timer.clock {
        Clock::Millis => 1,
        Clock::Nano | Clock::Counter => EXECUTIONS,
    }
}

/// Makes the runs of coarse clocks so long that one round of each VM fills the time.
fn lengthen(timers: &mut [Timer], setup: &Setup<'_>, vm: &mut VmProcess) -> Result<()> {
    let coarse = timers
        .iter()
        .filter(|timer| timer.clock == Clock::Millis)
        .count();
    if coarse == 0 {
        return Ok(());
    }
    let runs = coarse.saturating_mul(setup.launches).max(1);
    #[allow(clippy::cast_precision_loss, reason = "some thousand runs")]
    let budget_ms = setup.time.as_secs_f64() * 1000.0 * 0.7 / runs as f64;
    for timer in timers
        .iter_mut()
        .filter(|timer| timer.clock == Clock::Millis)
    {
        let mut repetitions = 256_u32;
        let ticks = loop {
            let mut run = timer.long;
            run.repetitions = repetitions;
            let answers = vm.time(&[(run, 1)])?;
            #[allow(clippy::cast_precision_loss, reason = "the time of a run")]
            let ticks = answers.first().copied().unwrap_or(0) as f64;
            if ticks >= PLANNED_TICKS.min(budget_ms / 4.0) || repetitions > 1 << 26 {
                break ticks.max(1.0);
            }
            repetitions = repetitions.saturating_mul(2);
        };
        let factor = (budget_ms / ticks).clamp(0.05, 1000.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is below 2^31, and above 0"
        )]
        let long = (f64::from(repetitions) * factor).clamp(f64::from(LONGER), 2e9) as u32;
        timer.long.repetitions = long;
        timer.short.repetitions = long / LONGER;
    }
    Ok(())
}
