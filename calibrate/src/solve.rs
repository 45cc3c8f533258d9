//! What does each key cost, and how sure is that?

use crate::clock::Clock;
use crate::least_squares::NormalEquations;
use crate::program::{Program, Unseparated};
use crate::quantile::{median, quantile};
use crate::slopes::Launch;
use crate::tally::CostKey;
use fastrand::Rng;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use std::collections::BTreeMap;

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

/// The costs by one clock.
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

/// The mean of launches of the median of rounds, for each equation. `chosen`: the launches with their rounds, which may occur more than once.
fn times(launches: &[Launch], chosen: &[(usize, Vec<usize>)], timers: &[usize]) -> Vec<f64> {
    let mut values = Vec::new();
    let mut of_launch = |timer: usize, launch: &Launch, rounds: &[usize]| {
        values.clear();
        let times = rounds
            .iter()
            .filter_map(|round| launch.rounds.get(*round)?.get(timer));
        values.extend(times);
        median(&mut values)
    };
    timers
        .iter()
        .map(|timer| {
            let mut sum = 0.0;
            for (launch, rounds) in chosen {
                if let Some(launch) = launches.get(*launch) {
                    sum += of_launch(*timer, launch, rounds);
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
pub fn solve(program: &Program, launches: &[Launch], clock: Clock) -> Costs {
    let random = &mut Rng::with_seed(SEED);
    let timers: Vec<usize> = program
        .timers
        .iter()
        .enumerate()
        .filter_map(|(at, timer)| (timer.clock == clock).then_some(at))
        .collect();
    let tallies = || {
        timers
            .iter()
            .filter_map(|at| program.timers.get(*at))
            .map(|it| &it.tally)
    };
    let mut keys: BTreeMap<CostKey, usize> = BTreeMap::new();
    for (key, _) in tallies().flat_map(|tally| tally.iter()) {
        if let Some(key) = measured_as(program, key) {
            let next = keys.len();
            keys.entry(key.clone()).or_insert(next);
        }
    }
    let equations: Vec<Vec<(usize, f64)>> = tallies()
        .map(|tally| {
            let mut row: BTreeMap<usize, f64> = BTreeMap::new();
            for (key, count) in tally.iter() {
                if let Some(at) = measured_as(program, key).and_then(|key| keys.get(key)) {
                    *row.entry(*at).or_default() += f64::from(count);
                }
            }
            row.into_iter().collect()
        })
        .collect();

    let all: Vec<(usize, Vec<usize>)> = launches
        .iter()
        .enumerate()
        .map(|(at, launch)| (at, (0..launch.rounds.len()).collect()))
        .collect();
    let measured = times(launches, &all, &timers);
    // The error of a time is a share of it.
    let weights: Vec<f64> = measured.iter().map(|time| 1.0 / time.max(1e-3)).collect();
    let normal = NormalEquations::new(keys.len(), &equations, &weights);
    let values = normal.solve(&measured, None);
    let mut replicates: Vec<Vec<f64>> = vec![Vec::with_capacity(REPLICATES); keys.len()];
    for _ in 0..REPLICATES {
        let chosen: Vec<_> = launches.iter().map(|_| draw(launches, random)).collect();
        let solution = normal.solve(&times(launches, &chosen, &timers), Some(&values));
        for (all, value) in replicates.iter_mut().zip(solution) {
            all.push(value);
        }
    }

    let enlargement = enlargement(launches.len());
    let rounds = launches
        .iter()
        .map(|launch| launch.rounds.len())
        .sum::<usize>();
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let mut costs = Vec::new();
    for (key, at) in keys {
        let value = values.get(at).copied().unwrap_or(0.0);
        let own = replicates
            .get_mut(at)
            .map_or(&mut [][..], Vec::as_mut_slice);
        let below = (value - quantile(own, tail)).max(0.0) * enlargement;
        let above = (quantile(own, 1.0 - tail) - value).max(0.0) * enlargement;
        let with_key = |row: &&Vec<(usize, f64)>| row.iter().any(|(other, _)| *other == at);
        costs.push(Cost {
            key,
            value,
            low: (value - below).max(0.0),
            high: value + above,
            measured: rounds.saturating_mul(equations.iter().filter(with_key).count()),
            origin: Origin::Measured,
        });
    }
    add_unseparated(program, &mut costs);
    costs.sort_by(|a, b| a.key.cmp(&b.key));
    let mut deviations: Vec<f64> = equations
        .iter()
        .zip(&measured)
        .map(|(row, time)| {
            let sum = row
                .iter()
                .map(|(at, count)| count * values.get(*at).unwrap_or(&0.0));
            (sum.sum::<f64>() / time - 1.0).abs()
        })
        .collect();
    Costs {
        clock,
        costs,
        units: timers.len(),
        deviation: median(&mut deviations),
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

/// Returns the key that stands for another one in the equations. None: none does, its cost is contained in others'.
fn measured_as<'a>(program: &'a Program, key: &'a CostKey) -> Option<&'a CostKey> {
    let other = program.unseparated.iter().find_map(|one| match one {
        Unseparated::Half(half, with) if half == key => Some(Some(with)),
        Unseparated::Contained(contained, _) if contained == key => Some(None),
        _ => None,
    });
    other.unwrap_or(Some(key))
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
