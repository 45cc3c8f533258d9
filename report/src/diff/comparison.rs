//! Compares rows and tests their differences for significance.

use std::{cmp::Ordering, collections::BTreeSet};

use super::{
    DiffView, Quantity,
    session::{RowKey, SessionShares},
    statistics::{Proportion, false_discovery_rates, two_means, two_proportions, two_rates},
    tables,
    tested_by::TestedBy,
    total::{Per, TotalChange, mean, total_change},
};
use crate::{
    error::{Error, Result},
    measures::Measure,
    view::GroupBy,
    weights::Weight,
};

/// Rows with fewer samples on both sides together are not tested, because no difference would be significant.
pub const LEAST_SAMPLES: u64 = 10;

/// The result of a comparison.
#[derive(Debug)]
pub struct Comparison<'d> {
    pub view: &'d DiffView,
    /// A and B.
    pub sides: [&'d [SessionShares]; 2],
    /// The unit of absolute values, or the reason why there are none.
    pub per: std::result::Result<Per, String>,
    /// The change of the total, or the reason why totals cannot be compared.
    pub total: std::result::Result<TotalChange, String>,
    pub tables: Vec<DiffTable>,
}

/// A table of rows: significant rows first, then by the size of the difference.
#[derive(Debug)]
pub struct DiffTable {
    pub by: GroupBy,
    /// Number of tested rows.
    pub tested: usize,
    pub rows: Vec<DiffRow>,
    /// Number of rows below the view's limits.
    pub hidden: usize,
}

/// A row.
#[derive(Debug)]
pub struct DiffRow {
    pub key: RowKey,
    pub a: SideValue,
    pub b: SideValue,
    /// None if the row has too few samples or no test is possible.
    pub test: Option<TestResult>,
}

/// The significance of a row's difference.
#[derive(Debug, Clone, Copy)]
pub struct TestResult {
    pub probability: f64,
    /// The smallest false discovery rate of the table at which the row is significant.
    pub rate: f64,
    pub is_significant: bool,
}

/// The values of a row on one side, as the mean of its sessions.
#[derive(Debug, Clone, Copy)]
pub struct SideValue {
    /// The sum of samples, or of the measure, in all sessions.
    pub samples: u64,
    pub percent: f64,
    /// In milliseconds or millions of events.
    pub absolute: Option<f64>,
}

impl DiffRow {
    pub fn is_significant(&self) -> bool {
        self.test.is_some_and(|test| test.is_significant)
    }

    /// Returns the compared values.
    pub fn values(&self, quantity: Quantity) -> (f64, f64) {
        let value = |side: &SideValue| match quantity {
            Quantity::Share => side.percent,
            Quantity::Absolute => side.absolute.unwrap_or_default(),
        };
        (value(&self.a), value(&self.b))
    }

    pub fn change(&self, quantity: Quantity) -> f64 {
        let (a, b) = self.values(quantity);
        b - a
    }
}

impl<'d> Comparison<'d> {
    /// # Errors
    ///
    /// The view compares absolute values, which the sessions do not have.
    pub fn new(view: &'d DiffView, sides: [&'d [SessionShares]; 2]) -> Result<Self> {
        let [a, b] = sides;
        let per = Per::of(a.iter().chain(b));
        if let (Quantity::Absolute, Err(reason)) = (view.quantity, &per) {
            return Err(Error::NotAbsolute(reason.clone()));
        }
        let total = per.clone().map(|per| total_change(sides, per));
        let mut comparison = Self {
            view,
            sides,
            per,
            total,
            tables: Vec::new(),
        };
        let tables = tables(&view.view).into_iter().enumerate();
        comparison.tables = tables
            .map(|(place, by)| comparison.table(place, by))
            .collect();
        Ok(comparison)
    }

    /// Returns the measure that the view names. None if samples are compared.
    pub fn measure(&self) -> Option<&'d Measure> {
        let mut sessions = self.sides.iter().copied().flatten();
        let measures = &sessions.next()?.measures;
        let first = measures.list.first();
        first.filter(|_| !measures.are_samples())
    }

    /// Returns the basis of the tests.
    pub fn tested_by(&self) -> TestedBy {
        TestedBy::of(self.sides)
    }

    fn table(&self, place: usize, by: GroupBy) -> DiffTable {
        let sessions = self.sides.iter().copied().flatten();
        let keys = sessions.filter_map(|session| session.tables.get(place));
        let keys: BTreeSet<&RowKey> = keys.flat_map(|table| table.keys()).collect();
        let mut rows: Vec<DiffRow> = keys.into_iter().map(|key| self.row(place, key)).collect();
        self.correct(&mut rows);
        let tested = rows.iter().filter(|row| row.test.is_some()).count();
        let quantity = self.view.quantity;
        // Equal rows stay in the order of their names.
        rows.sort_by(|one, other| {
            let change = |row: &DiffRow| row.change(quantity).abs();
            let by_change = change(other).total_cmp(&change(one));
            let significant_first = other.is_significant().cmp(&one.is_significant());
            match by {
                GroupBy::Layer => Ordering::Equal,
                _ => significant_first.then(by_change),
            }
        });
        let found = rows.len();
        let limits = &self.view.view;
        rows.retain(|row| row.a.percent.max(row.b.percent) >= limits.min_percent);
        if by != GroupBy::Layer || tables(limits).len() == 1 {
            limits.truncate(&mut rows);
        }
        DiffTable {
            by,
            tested,
            hidden: found.saturating_sub(rows.len()),
            rows,
        }
    }

    /// Makes a row whose false discovery rate is not yet known.
    fn row(&self, place: usize, key: &RowKey) -> DiffRow {
        let [a, b] = self.sides.map(|sessions| {
            let weights = sessions.iter().map(|session| session.weight(place, key));
            weights.collect::<Vec<_>>()
        });
        let [of_a, of_b] = self.sides;
        let value = |sessions: &[SessionShares], weights: &[Weight]| SideValue {
            samples: counted(sessions, weights),
            percent: mean(&self.values(sessions, weights, Quantity::Share)),
            absolute: (self.per.is_ok())
                .then(|| mean(&self.values(sessions, weights, Quantity::Absolute))),
        };
        let all = counted(of_a, &a).saturating_add(counted(of_b, &b));
        let probability = match all >= LEAST_SAMPLES {
            true => self.probability(&a, &b),
            false => None,
        };
        let test = probability.map(|probability| TestResult {
            probability,
            rate: 1.0,
            is_significant: false,
        });
        DiffRow {
            key: key.clone(),
            a: value(of_a, &a),
            b: value(of_b, &b),
            test,
        }
    }

    /// Computes the values of one side.
    fn values(
        &self,
        sessions: &[SessionShares],
        weights: &[Weight],
        quantity: Quantity,
    ) -> Vec<f64> {
        let value = |(session, weight): (&SessionShares, &Weight)| match (quantity, &self.per) {
            (Quantity::Absolute, Ok(per)) => per.value(session, session.amount(*weight)),
            _ => session.percent(*weight),
        };
        sessions.iter().zip(weights).map(value).collect()
    }

    /// Returns the p-value of a difference. None if it cannot be tested.
    fn probability(&self, a: &[Weight], b: &[Weight]) -> Option<f64> {
        let [of_a, of_b] = self.sides;
        let (x, y) = (counted(of_a, a), counted(of_b, b));
        let by_sample = match (self.view.quantity, &self.per) {
            (Quantity::Absolute, Ok(per)) => two_rates(per.rate(x, of_a), per.rate(y, of_b)),
            _ => {
                let of = |part: u64, sessions: &[SessionShares]| {
                    let samples = sessions.iter().map(|session| session.count(session.all));
                    Proportion {
                        part,
                        all: samples.fold(0, u64::saturating_add),
                    }
                };
                two_proportions(of(x, of_a), of(y, of_b))
            }
        };
        let quantity = self.view.quantity;
        let by_session = two_means(
            &self.values(of_a, a, quantity),
            &self.values(of_b, b, quantity),
        );
        self.tested_by().probability(by_sample, by_session)
    }

    /// Sets the false discovery rates of a table's rows.
    fn correct(&self, rows: &mut [DiffRow]) {
        let mut tests: Vec<_> = rows
            .iter_mut()
            .filter_map(|row| row.test.as_mut())
            .collect();
        let probabilities: Vec<f64> = tests.iter().map(|test| test.probability).collect();
        let rates = false_discovery_rates(&probabilities);
        for (test, rate) in tests.iter_mut().zip(rates) {
            test.rate = rate;
            test.is_significant = rate <= self.view.level;
        }
    }
}

/// Returns the sum of samples, or of the measure, in all sessions of a side.
fn counted(sessions: &[SessionShares], weights: &[Weight]) -> u64 {
    let both = sessions.iter().zip(weights);
    let counts = both.map(|(session, weight)| session.count(*weight));
    counts.fold(0, u64::saturating_add)
}
