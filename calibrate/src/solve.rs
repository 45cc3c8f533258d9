//! What does each key cost, and how sure is that?

use crate::clock::Clock;
use crate::equations::{Equations, Solution};
use crate::program::{Program, UnitKind, Unseparated};
use crate::quantile::{median, quantile};
use crate::slopes::Launch;
use crate::tally::CostKey;
use fastrand::Rng;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// How often the launches and rounds are drawn again.
const REPLICATES: usize = 200;
/// What the replicates are drawn by.
const SEED: u64 = 1;
/// The share of cases in which an interval contains the cost.
pub const CONFIDENCE: f64 = 0.95;

/// What a key costs, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The key.
    pub key: CostKey,
    /// The cost.
    pub value: f64,
    /// The least that it may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
    /// The number of measured times that have a part in it: of each round of each unit with the key.
    pub measured: usize,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a cost comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Units with the key were measured.
    Measured,
    /// It is zero, because its cost is contained in that of others: the text says in which.
    Contained(&'static str),
    /// It is half of what was measured of two keys together.
    Shared,
}

/// The costs of one kind of units by one clock.
#[derive(Debug, Clone)]
pub struct Costs {
    /// The clock.
    pub clock: Clock,
    /// The costs, by key.
    pub costs: Vec<Cost>,
    /// The number of units.
    pub units: usize,
    /// By how much of its time a unit differs from the sum of its keys' costs: the median of all units.
    pub deviation: f64,
}

impl Costs {
    /// Returns the cost of a key.
    #[must_use]
    pub fn get(&self, key: &CostKey) -> Option<&Cost> {
        let at = self.costs.binary_search_by(|cost| cost.key.cmp(key)).ok()?;
        self.costs.get(at)
    }
}

/// The costs by one clock.
#[derive(Debug, Clone)]
pub struct Solved {
    /// What instructions cost alone, by units of a single one each.
    pub alone: Costs,
    /// What they cost beside others, by units of many, near what they cost alone. Without such units it is that.
    pub in_programs: Costs,
}

/// The mean of launches of the median of rounds, for each timer. `chosen`: the launches with their rounds, which may occur more than once.
fn times(launches: &[Launch], chosen: &[(usize, Vec<usize>)], timers: usize) -> Vec<f64> {
    let mut values = Vec::new();
    let mut of_launch = |timer: usize, launch: &Launch, rounds: &[usize]| {
        values.clear();
        let times = rounds
            .iter()
            .filter_map(|round| launch.rounds.get(*round)?.get(timer));
        values.extend(times);
        median(&mut values)
    };
    (0..timers)
        .map(|timer| {
            let mut sum = 0.0;
            for (launch, rounds) in chosen {
                if let Some(launch) = launches.get(*launch) {
                    sum += of_launch(timer, launch, rounds);
                }
            }
            #[allow(clippy::cast_precision_loss, reason = "a few launches")]
            let count = chosen.len() as f64;
            sum / count
        })
        .collect()
}

/// By how much deviations among few launches have to be enlarged. Drawing from them again shows less than their variance, and a few of them do not
/// show it well: Student's distribution says how well.
fn enlargement(launches: usize) -> f64 {
    let tail = 1.0 - (1.0 - CONFIDENCE) / 2.0;
    #[allow(clippy::cast_precision_loss, reason = "a few launches")]
    let (count, freedom) = (launches as f64, launches.saturating_sub(1) as f64);
    let student = StudentsT::new(0.0, 1.0, freedom).map(|it| it.inverse_cdf(tail));
    let normal = Normal::new(0.0, 1.0).map(|it| it.inverse_cdf(tail));
    match (student, normal) {
        (Ok(student), Ok(normal)) => student / normal * (count / freedom).sqrt(),
        // A single launch: nothing is known about others.
        _ => f64::INFINITY,
    }
}

/// Solves for the costs of all keys by one clock. The same measurements have the same costs and intervals.
pub fn solve(program: &Program, launches: &[Launch], clock: Clock) -> Solved {
    let random = &mut Rng::with_seed(SEED);
    let equations = Equations::new(program, clock);
    let timers = program.timers.len();
    let all: Vec<(usize, Vec<usize>)> = launches
        .iter()
        .enumerate()
        .map(|(at, launch)| (at, (0..launch.rounds.len()).collect()))
        .collect();
    let measured = times(launches, &all, timers);
    let (solution, solver) = equations.solve(&measured);
    let replicates: Vec<Solution> = (0..REPLICATES)
        .map(|_| {
            let chosen: Vec<_> = launches.iter().map(|_| draw(launches, random)).collect();
            solver.solve(&times(launches, &chosen, timers), Some(&solution))
        })
        .collect();

    let enlargement = enlargement(launches.len());
    let rounds = launches
        .iter()
        .map(|launch| launch.rounds.len())
        .sum::<usize>();
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let of = |kind, costs: fn(&Solution) -> &[f64]| {
        let at = |solution, key: usize| costs(solution).get(key).copied().unwrap_or(0.0);
        let cost = |(key, number): (&CostKey, usize)| {
            let value = at(&solution, number);
            let mut own: Vec<f64> = replicates.iter().map(|one| at(one, number)).collect();
            let below = (value - quantile(&mut own, tail)).max(0.0) * enlargement;
            let above = (quantile(&mut own, 1.0 - tail) - value).max(0.0) * enlargement;
            Cost {
                key: key.clone(),
                value,
                low: (value - below).max(0.0),
                high: value + above,
                measured: rounds.saturating_mul(equations.units_with(kind, number)),
                origin: Origin::Measured,
            }
        };
        let mut all: Vec<Cost> = equations.keys().map(cost).collect();
        add_unseparated(program, &mut all);
        all.sort_by(|a, b| a.key.cmp(&b.key));
        Costs {
            clock,
            costs: all,
            units: equations.units(kind),
            deviation: equations.deviation(kind, &measured, costs(&solution)),
        }
    };
    Solved {
        alone: of(UnitKind::Single, |solution| &solution.alone),
        in_programs: of(UnitKind::Mixed, |solution| &solution.in_programs),
    }
}

/// Draws a launch, and as many of its rounds as it has.
fn draw(launches: &[Launch], random: &mut Rng) -> (usize, Vec<usize>) {
    let launch = random.usize(0..launches.len().max(1));
    let rounds = launches.get(launch).map_or(0, |launch| launch.rounds.len());
    (
        launch,
        (0..rounds).map(|_| random.usize(0..rounds)).collect(),
    )
}

fn add_unseparated(program: &Program, costs: &mut Vec<Cost>) {
    for one in &program.unseparated {
        match one {
            Unseparated::Contained(key, within) => costs.push(Cost {
                key: key.clone(),
                value: 0.0,
                low: 0.0,
                high: 0.0,
                measured: 0,
                origin: Origin::Contained(within),
            }),
            Unseparated::Half(key, with) => {
                let Some(whole) = costs.iter_mut().find(|cost| cost.key == *with) else {
                    continue;
                };
                // Both count for one unknown, which is the mean of the two.
                whole.origin = Origin::Shared;
                let half = Cost {
                    key: key.clone(),
                    ..whole.clone()
                };
                costs.push(half);
            }
        }
    }
}

#[cfg(test)]
#[path = "solve/tests.rs"]
mod tests;
