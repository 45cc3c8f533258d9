//! Compares the totals of the sides.

use std::fmt;

use super::{
    session::SessionShares,
    statistics::{EventRate, real, two_means, two_rates},
    tested_by::TestedBy,
};
use crate::columns::probability_text;

/// The total of all selected samples on a side, as the mean of its sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    /// The sum of samples, or of the measure, in all its sessions.
    pub samples: u64,
    /// In milliseconds or millions of events.
    pub value: f64,
}

/// The change of the total.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TotalChange {
    /// The baseline.
    pub a: Total,
    /// The side that is compared with it.
    pub b: Total,
    /// The p-value of the difference. None if it cannot be tested, for example for one session of waits on each side.
    pub probability: Option<f64>,
}

impl TotalChange {
    /// Returns the increase from A to B in percent. None if A is 0.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        relative(self.a.value, self.b.value)
    }

    /// Returns true if B is larger by more than this percentage and the difference is significant.
    #[must_use]
    pub fn is_slower(&self, percent: f64, level: f64) -> bool {
        let more = match self.percent() {
            Some(change) => change > percent,
            None => self.b.value > 0.0,
        };
        more && self.probability.is_some_and(|p| p <= level)
    }
}

/// Formats as `+5.21 % (p 0.004)` or `+5.21 % (not tested)`.
impl fmt::Display for TotalChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.percent() {
            Some(change) => write!(f, "{change:+.2} %")?,
            None => f.write_str("new")?,
        }
        match self.probability {
            Some(p) => write!(f, " (p {})", probability_text(p)),
            None => f.write_str(" (not tested)"),
        }
    }
}

/// Returns the increase from `a` to `b` in percent.
pub fn relative(a: f64, b: f64) -> Option<f64> {
    (a > 0.0).then(|| (b - a) * 100.0 / a)
}

/// The reference of sums of periods, which makes sessions comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// A complete run of a command.
    Run,
    /// A second of the recording.
    Second,
}

impl Per {
    /// Returns the common reference of these sessions, or the reason why their sums are unreliable.
    pub fn of<'s>(
        sessions: impl Iterator<Item = &'s SessionShares> + Clone,
    ) -> Result<Self, String> {
        let mut reasons = sessions
            .clone()
            .filter_map(|session| session.not_absolute.as_ref());
        if let Some(reason) = reasons.next() {
            return Err(reason.clone());
        }
        if sessions.clone().all(|session| session.recording.is_command) {
            return Ok(Self::Run);
        }
        let mut empty = sessions.filter(|session| session.recording.duration.is_zero());
        match empty.next() {
            Some(session) => Err(format!(
                "{} has no duration",
                session.recording.folder.display()
            )),
            None => Ok(Self::Second),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Second => "second",
        }
    }

    /// Returns the number of references in a session.
    fn count(self, session: &SessionShares) -> f64 {
        match self {
            Self::Run => 1.0,
            Self::Second => session.recording.duration.as_secs_f64(),
        }
    }

    /// Returns a sum of periods per reference, in milliseconds or millions of events.
    pub fn value(self, session: &SessionShares, period: u64) -> f64 {
        real(period) / 1e6 / self.count(session)
    }

    /// Returns the rate of events in the references of sessions, where a sample stands for its session's mean period.
    pub fn rate(self, events: u64, sessions: &[SessionShares]) -> EventRate {
        let of_session = |session: &SessionShares| {
            self.count(session) * real(session.count(session.all))
                / real(session.amount(session.all))
        };
        EventRate {
            events,
            exposure: sessions.iter().map(of_session).sum(),
        }
    }
}

/// Returns the change of the totals.
pub fn total_change([a, b]: [&[SessionShares]; 2], per: Per) -> TotalChange {
    let values = |sessions: &[SessionShares]| -> Vec<f64> {
        let value = |session| per.value(session, session.amount(session.selected));
        sessions.iter().map(value).collect()
    };
    let samples = |sessions: &[SessionShares]| {
        let samples = sessions
            .iter()
            .map(|session| session.count(session.selected));
        samples.fold(0, u64::saturating_add)
    };
    let (of_a, of_b) = (values(a), values(b));
    let (x, y) = (samples(a), samples(b));
    let by_sample = two_rates(per.rate(x, a), per.rate(y, b));
    let by_session = two_means(&of_a, &of_b);
    let total = |samples, values: &[f64]| Total {
        samples,
        value: mean(values),
    };
    TotalChange {
        a: total(x, &of_a),
        b: total(y, &of_b),
        probability: TestedBy::of([a, b]).probability(by_sample, by_session),
    }
}

/// Returns the mean of values, or 0 if there are none.
pub fn mean(values: &[f64]) -> f64 {
    match values.len() {
        0 => 0.0,
        len => values.iter().sum::<f64>() / real(u64::try_from(len).unwrap_or(u64::MAX)),
    }
}
