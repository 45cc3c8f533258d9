//! Which equations say what keys cost, and what do they say together?
//!
//! Units of a single instruction show what it costs alone: where each jump of an interpreter leads to the same place, and each instruction waits for
//! the one before. Beside others it may cost less, because a processor executes instructions beside each other, or more, because it predicts
//! less. Units that mix instructions show that, but not for each key by itself. So the costs in programs are those of the mixed units' equations
//! that are near the costs alone.

use crate::clock::Clock;
use crate::least_squares::NormalEquations;
use crate::program::{Program, UnitKind, Unseparated};
use crate::quantile::median;
use crate::tally::CostKey;
use std::collections::BTreeMap;

/// How much a deviation from the cost alone weighs, beside one of a mixed unit's time. Both are shares: such a time differs from the sum of the
/// costs by a tenth, a cost from that alone by as much as itself.
const NEARNESS: f64 = 0.1;
/// The least cost alone that deviations are a share of, as a share of the median: instructions that cost nothing alone may cost something.
const LEAST: f64 = 0.25;

/// A unit's time as the sum of costs.
struct Equation {
    /// The timer.
    timer: usize,
    /// The keys by their numbers, with their executions.
    row: Vec<(usize, f64)>,
}

/// The equations of a program's units by one clock.
pub(crate) struct Equations {
    /// The numbers of keys.
    keys: BTreeMap<CostKey, usize>,
    single: Vec<Equation>,
    mixed: Vec<Equation>,
}

/// What each key costs by its number, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Solution {
    pub(crate) alone: Vec<f64>,
    pub(crate) in_programs: Vec<f64>,
}

impl Equations {
    /// Collects the equations of the units that this clock times.
    pub(crate) fn new(program: &Program, clock: Clock) -> Self {
        let mut keys: BTreeMap<CostKey, usize> = BTreeMap::new();
        let (mut single, mut mixed) = (Vec::new(), Vec::new());
        let timers = program.timers.iter().enumerate();
        for (at, timer) in timers.filter(|(_, timer)| timer.clock == clock) {
            let mut row: BTreeMap<usize, f64> = BTreeMap::new();
            for (key, count) in timer.tally.iter() {
                if let Some(key) = measured_as(program, key) {
                    let next = keys.len();
                    let number = *keys.entry(key.clone()).or_insert(next);
                    *row.entry(number).or_default() += f64::from(count);
                }
            }
            let equation = Equation {
                timer: at,
                row: row.into_iter().collect(),
            };
            match timer.kind {
                UnitKind::Single => single.push(equation),
                UnitKind::Mixed => mixed.push(equation),
            }
        }
        Self {
            keys,
            single,
            mixed,
        }
    }

    /// Returns the keys with their numbers.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&CostKey, usize)> {
        self.keys.iter().map(|(key, number)| (key, *number))
    }

    /// Returns the number of units of a kind.
    pub(crate) fn units(&self, kind: UnitKind) -> usize {
        self.of(kind).len()
    }

    /// Returns the number of units that have a part in what a key costs alone, or in programs.
    pub(crate) fn units_with(&self, kind: UnitKind, key: usize) -> usize {
        let has_key = |equation: &&Equation| equation.row.iter().any(|(other, _)| *other == key);
        let of = |kind| self.of(kind).iter().filter(has_key).count();
        match kind {
            UnitKind::Single => of(kind),
            UnitKind::Mixed => of(UnitKind::Single).saturating_add(of(kind)),
        }
    }

    fn of(&self, kind: UnitKind) -> &[Equation] {
        match kind {
            UnitKind::Single => &self.single,
            UnitKind::Mixed => &self.mixed,
        }
    }

    /// Returns by how much of its time a unit of a kind differs from the sum of these costs: the median.
    pub(crate) fn deviation(&self, kind: UnitKind, times: &[f64], costs: &[f64]) -> f64 {
        let cost = |key: usize| costs.get(key).copied().unwrap_or(0.0);
        let deviation = |equation: &Equation| {
            let sum: f64 = equation
                .row
                .iter()
                .map(|(key, count)| count * cost(*key))
                .sum();
            (sum / time(times, equation) - 1.0).abs()
        };
        median(&mut self.of(kind).iter().map(deviation).collect::<Vec<_>>())
    }

    /// Solves the equations for times by timer, and returns what solves them for other times, too.
    pub(crate) fn solve(&self, times: &[f64]) -> (Solution, Solver<'_>) {
        let unknowns = self.keys.len();
        let alone = System::new(unknowns, &self.single, times, Vec::new());
        let costs = alone.solve(times, &[], None);
        let mut typical: Vec<f64> = costs.iter().copied().filter(|cost| *cost > 0.0).collect();
        let least = LEAST * median(&mut typical).max(f64::MIN_POSITIVE);
        let near = costs.iter().map(|cost| NEARNESS / cost.max(least));
        let solver = Solver {
            alone,
            mixed: System::new(unknowns, &self.mixed, times, near.collect()),
        };
        (solver.solve(times, None), solver)
    }
}

/// What solves a program's equations for other times.
pub(crate) struct Solver<'e> {
    alone: System<'e>,
    mixed: System<'e>,
}

impl Solver<'_> {
    /// Solves the equations. `near`: the solution for similar times, from which this one is found sooner.
    pub(crate) fn solve(&self, times: &[f64], near: Option<&Solution>) -> Solution {
        let of = |costs: fn(&Solution) -> &Vec<f64>| near.map(|near| costs(near).as_slice());
        let alone = self.alone.solve(times, &[], of(|near| &near.alone));
        let in_programs = match self.mixed.equations {
            [] => alone.clone(),
            _ => self
                .mixed
                .solve(times, &alone, of(|near| &near.in_programs)),
        };
        Solution { alone, in_programs }
    }
}

/// Equations of one kind, and perhaps one for each key that it is near a known cost.
struct System<'e> {
    equations: &'e [Equation],
    normal: NormalEquations,
}

impl<'e> System<'e> {
    /// `near`: the weights of the keys' known costs, or nothing.
    fn new(unknowns: usize, equations: &'e [Equation], times: &[f64], near: Vec<f64>) -> Self {
        let mut rows: Vec<_> = equations.iter().map(|one| one.row.clone()).collect();
        rows.extend((0..near.len()).map(|key| vec![(key, 1.0)]));
        // The error of a time is a share of it.
        let weights = equations.iter().map(|one| 1.0 / time(times, one).max(1e-3));
        let weights: Vec<f64> = weights.chain(near).collect();
        Self {
            equations,
            normal: NormalEquations::new(unknowns, &rows, &weights),
        }
    }

    /// `known`: the costs that the keys' are near, or nothing.
    fn solve(&self, times: &[f64], known: &[f64], near: Option<&[f64]>) -> Vec<f64> {
        let times = self.equations.iter().map(|one| time(times, one));
        let right: Vec<f64> = times.chain(known.iter().copied()).collect();
        self.normal.solve(&right, near)
    }
}

fn time(times: &[f64], equation: &Equation) -> f64 {
    times.get(equation.timer).copied().unwrap_or(f64::NAN)
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
