//! A synthetic clock, whose costs are known.

use super::*;
use crate::program::{MethodNumber, Run, Shape, Timer, UnitKind};
use crate::slopes::slope;
use crate::tally::Tally;

/// What times differ by, beside the costs.
struct Clockwork {
    /// The clock's ticks, in nanoseconds.
    tick: f64,
    /// The share of runs that another program interrupts for up to 100 µs.
    interrupted: f64,
    /// The share of each launch's times that depends on where the unit lies, as a standard deviation.
    placement: f64,
    repetitions: [u32; 2],
    /// The times of a run in a round.
    executions: usize,
}

const FINE: Clockwork = Clockwork {
    tick: 1.0,
    interrupted: 0.05,
    placement: 0.03,
    repetitions: [150, 600],
    executions: 10,
};
const LAUNCHES: usize = 6;
const ROUNDS: usize = 6;
const KEYS: usize = 10;

/// The keys' true costs: quick ones and slow ones.
fn truth(key: usize) -> f64 {
    [0.5, 0.8, 0.8, 1.6, 1.6, 2.0, 3.0, 6.0, 25.0, 50.0][key]
}

fn key(number: usize) -> CostKey {
    CostKey::new(format!("key{number}"))
}

/// Units of one key, and of one with another.
fn program(repetitions: [u32; 2]) -> Program {
    let mut timers = Vec::new();
    for first in 0..KEYS {
        for with in [None, Some((first + 3) % KEYS)] {
            let mut tally = Tally::default();
            tally.add(key(first), 1);
            if let Some(with) = with {
                tally.add(key(with), 2);
            }
            let [short, long] = repetitions.map(|repetitions| Run {
                method: MethodNumber(0),
                repetitions,
            });
            timers.push(Timer {
                unit: String::new(),
                clock: Clock::Nano,
                kind: match with {
                    None => UnitKind::Single,
                    Some(_) => UnitKind::Mixed,
                },
                shape: Shape::Straight,
                tally,
                short,
                long,
            });
        }
    }
    Program {
        main_class: String::new(),
        files: Vec::new(),
        timers,
        clocks: Vec::new(),
        unseparated: Vec::new(),
        imperative: (0..KEYS).map(key).collect(),
    }
}

/// A random number whose mean is 0 and whose standard deviation is 1.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// The time that a clock shows for a run.
fn run(clockwork: &Clockwork, duration: f64, random: &mut Rng) -> f64 {
    let mut time = 40.0 + duration + -random.f64().ln() * 5.0;
    if random.f64() < clockwork.interrupted {
        time += random.f64() * 100_000.0;
    }
    let start = random.f64() * clockwork.tick;
    (((start + time) / clockwork.tick).floor() - (start / clockwork.tick).floor()) * clockwork.tick
}

/// The sum of the true costs of what a unit executes.
fn true_time(timer: &Timer) -> f64 {
    let key = |key: &CostKey| key.as_str()[3..].parse::<usize>().unwrap();
    timer
        .tally
        .iter()
        .map(|(name, count)| f64::from(count) * truth(key(name)))
        .sum()
}

fn measured(clockwork: &Clockwork, program: &Program, random: &mut Rng) -> Vec<Launch> {
    let launch = |random: &mut Rng| {
        let here: Vec<f64> = program
            .timers
            .iter()
            .map(|timer| true_time(timer) * (1.0 + clockwork.placement * normal(random)))
            .collect();
        let round = |random: &mut Rng| {
            here.iter()
                .map(|time| {
                    let mut runs = clockwork.repetitions.map(|repetitions| {
                        (0..clockwork.executions)
                            .map(|_| run(clockwork, time * f64::from(repetitions), random))
                            .collect::<Vec<_>>()
                    });
                    let [short, long] = &mut runs;
                    let more = clockwork.repetitions[1] - clockwork.repetitions[0];
                    slope(short, long, more.into())
                })
                .collect()
        };
        Launch {
            rounds: (0..ROUNDS).map(|_| round(random)).collect(),
        }
    };
    (0..LAUNCHES).map(|_| launch(random)).collect()
}

/// Returns the share of intervals that contain the true cost, and the median of the relative errors.
fn coverage(clockwork: &Clockwork, runs: u64) -> (f64, f64) {
    let program = program(clockwork.repetitions);
    let (mut inside, mut all, mut errors) = (0, 0, Vec::new());
    for seed in 0..runs {
        let mut random = Rng::with_seed(seed);
        let launches = measured(clockwork, &program, &mut random);
        let solved = solve(&program, &launches, Clock::Nano);
        for number in 0..KEYS {
            for costs in [&solved.alone, &solved.in_programs] {
                let cost = costs.get(&key(number)).unwrap();
                inside += u32::from(cost.low <= truth(number) && truth(number) <= cost.high);
                all += 1;
                errors.push((cost.value / truth(number) - 1.0).abs());
            }
        }
    }
    (f64::from(inside) / f64::from(all), median(&mut errors))
}

/// 600 intervals at 95 %: fewer than 90 % contain the truth with a probability below 0.001 if they are independent. The seeds are fixed.
#[test]
fn intervals_contain_the_truth_beside_interruptions_and_placements() {
    let (inside, error) = coverage(&FINE, 30);
    assert!(inside >= 0.90, "{inside}");
    assert!(error < 0.03, "{error}");
}

#[test]
fn a_busy_machine_has_the_same_costs() {
    let busy = Clockwork {
        interrupted: 0.4,
        ..FINE
    };
    let (inside, error) = coverage(&busy, 30);
    assert!(inside >= 0.90, "{inside}");
    assert!(error < 0.03, "{error}");
}

#[test]
fn loops_make_a_clock_of_milliseconds_fine_enough() {
    let coarse = Clockwork {
        tick: 1e6,
        interrupted: 0.05,
        placement: 0.01,
        repetitions: [2_000_000, 16_000_000],
        executions: 1,
    };
    let (inside, error) = coverage(&coarse, 20);
    assert!(inside >= 0.90, "{inside}");
    assert!(error < 0.03, "{error}");
}

#[test]
fn one_launch_says_nothing_about_others() {
    let program = program(FINE.repetitions);
    let mut random = Rng::with_seed(1);
    let launches = measured(&FINE, &program, &mut random);
    let solved = solve(&program, &launches[..1], Clock::Nano);
    assert!(
        solved
            .in_programs
            .costs
            .iter()
            .all(|cost| cost.high.is_infinite())
    );
}

#[test]
fn keys_that_no_unit_tells_apart_are_marked() {
    let mut program = program(FINE.repetitions);
    program.unseparated = vec![
        Unseparated::Contained(CostKey::new("return"), "the invokes"),
        Unseparated::Half(key(1), key(0)),
    ];
    let mut random = Rng::with_seed(1);
    let launches = measured(&FINE, &program, &mut random);
    let solved = solve(&program, &launches, Clock::Nano);
    let cost = |name: &CostKey| solved.in_programs.get(name).unwrap().clone();
    assert_eq!(
        cost(&CostKey::new("return")).origin,
        Origin::Contained("the invokes")
    );
    assert_eq!(cost(&key(0)).origin, Origin::Shared);
    assert!((cost(&key(0)).value - cost(&key(1)).value).abs() < 1e-12);
}

/// Beside others keys cost half of what they cost alone. Sums of the costs in programs are what mixed units take; which key has which part of a
/// sum is less sure.
#[test]
fn costs_in_programs_are_those_beside_others() {
    let program = program(FINE.repetitions);
    let mut random = Rng::with_seed(1);
    let mut launches = measured(&FINE, &program, &mut random);
    for round in launches.iter_mut().flat_map(|launch| &mut launch.rounds) {
        let timers = program.timers.iter().zip(round);
        for (_, time) in timers.filter(|(timer, _)| timer.kind == UnitKind::Mixed) {
            *time *= 0.5;
        }
    }
    let solved = solve(&program, &launches, Clock::Nano);
    let sum = |costs: &Costs, timer: &Timer| -> f64 {
        let cost = |key| costs.get(key).unwrap().value;
        let parts = timer.tally.iter();
        parts.map(|(key, count)| f64::from(count) * cost(key)).sum()
    };
    for timer in &program.timers {
        let (alone, expected) = (sum(&solved.alone, timer), true_time(timer));
        assert!((alone / expected - 1.0).abs() < 0.1, "{timer:?} {alone}");
        let in_programs = sum(&solved.in_programs, timer);
        let is_half = (in_programs / expected - 0.5).abs() < 0.1;
        assert!(
            is_half || timer.kind == UnitKind::Single,
            "{timer:?} {in_programs}"
        );
    }
}

#[test]
fn without_mixed_units_a_cost_in_programs_is_that_alone() {
    let mut program = program(FINE.repetitions);
    program
        .timers
        .retain(|timer| timer.kind == UnitKind::Single);
    let mut random = Rng::with_seed(1);
    let launches = measured(&FINE, &program, &mut random);
    let solved = solve(&program, &launches, Clock::Nano);
    let values = |costs: &Costs| {
        costs
            .costs
            .iter()
            .map(|cost| cost.value)
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&solved.alone), values(&solved.in_programs));
    assert_eq!(solved.in_programs.units, 0);
}
