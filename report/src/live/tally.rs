//! Sums the samples of each row, since the start and with exponential decay.
//!
//! The recent weight of a sample halves every [`HALF_LIFE`] seconds. Instead of scaling all rows down over time, later
//! samples get a higher weight, and values are divided by the current weight when they are read. Thus, a sample takes
//! one exponential function, and rows need no updates.

use varid_model::MonotonicNs;

/// Seconds in which the weight of a recent sample halves.
pub const HALF_LIFE: f64 = 5.0;

/// Number of half-lives after which all rows are scaled, long before numbers overflow.
const LONGEST: f64 = 256.0;

/// Samples and the sum of their periods. Recent ones are fractional.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amount {
    /// Samples.
    pub samples: f64,
    /// The sum of their periods, in the event's unit.
    pub period: f64,
}

impl Amount {
    /// Adds another amount.
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.period += other.period;
    }

    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self {
            samples: self.samples * factor,
            period: self.period * factor,
        }
    }
}

/// The own and total samples of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LiveShare {
    /// Samples with their leaf in it.
    pub own: Amount,
    /// Samples with it anywhere on their stack.
    pub total: Amount,
}

impl LiveShare {
    /// Adds another share.
    pub fn add(&mut self, other: Self) {
        self.own.add(other.own);
        self.total.add(other.total);
    }
}

/// The samples that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveSpan {
    /// All samples since the start of the recording.
    SinceStart,
    /// Recent samples, weighed according to [`HALF_LIFE`].
    Recent,
}

/// The sums of a row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    since_start: LiveShare,
    recent: LiveShare,
    /// The last counted sample. Each sample counts once, even if the row is on its stack several times.
    last: u64,
}

/// A weighed sample.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// From 1.
    number: u64,
    since_start: Amount,
    recent: Amount,
}

impl Tally {
    /// Adds a sample whose leaf is the row.
    pub fn add_own(&mut self, sample: Counted) {
        self.since_start.own.add(sample.since_start);
        self.recent.own.add(sample.recent);
    }

    /// Adds a sample whose stack contains the row.
    pub fn add_total(&mut self, sample: Counted) {
        if self.last != sample.number {
            self.last = sample.number;
            self.since_start.total.add(sample.since_start);
            self.recent.total.add(sample.recent);
        }
    }

    fn scale(&mut self, factor: f64) {
        let LiveShare { own, total } = self.recent;
        self.recent = LiveShare {
            own: own.scaled(factor),
            total: total.scaled(factor),
        };
    }
}

/// The weights of samples over time.
#[derive(Debug, Default)]
pub struct Clock {
    /// The time at which a sample has the weight 1.
    landmark: Option<MonotonicNs>,
    samples: u64,
    latest: MonotonicNs,
}

impl Clock {
    /// The time of the latest sample.
    pub const fn latest(&self) -> MonotonicNs {
        self.latest
    }

    /// Weighs the next sample. Also returns the factor by which all rows must first be scaled, if any.
    pub fn count(&mut self, time: MonotonicNs, period: u64) -> (Counted, Option<f64>) {
        let landmark = *self.landmark.get_or_insert(time);
        self.latest = self.latest.max(time);
        let mut scale = None;
        let mut age = half_lives(landmark, time);
        if age > LONGEST {
            scale = Some((-age).exp2());
            self.landmark = Some(time);
            age = 0.0;
        }
        self.samples = self.samples.saturating_add(1);
        let amount = Amount {
            samples: 1.0,
            period: period as f64,
        };
        let counted = Counted {
            number: self.samples,
            since_start: amount,
            recent: amount.scaled(age.exp2()),
        };
        (counted, scale)
    }

    /// Returns the values of a row at a time.
    pub fn share(&self, tally: &Tally, span: LiveSpan, now: MonotonicNs) -> LiveShare {
        match span {
            LiveSpan::SinceStart => tally.since_start,
            LiveSpan::Recent => {
                let age = self
                    .landmark
                    .map_or(0.0, |landmark| half_lives(landmark, now));
                let mut tally = *tally;
                tally.scale((-age).exp2());
                tally.recent
            }
        }
    }
}

/// Scales rows.
pub fn scale<'t>(tallies: impl IntoIterator<Item = &'t mut Tally>, factor: f64) {
    for tally in tallies {
        tally.scale(factor);
    }
}

/// The number of half-lives between two times. Negative if the second one is earlier.
fn half_lives(from: MonotonicNs, to: MonotonicNs) -> f64 {
    let seconds = to.since(from).as_secs_f64() - from.since(to).as_secs_f64();
    // Times in a damaged recording are arbitrary.
    (seconds / HALF_LIFE).clamp(-1000.0, 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> MonotonicNs {
        MonotonicNs::new((seconds * 1e9) as u64)
    }

    fn add(clock: &mut Clock, tally: &mut Tally, seconds: f64) {
        let (sample, factor) = clock.count(at(seconds), 10);
        scale([&mut *tally], factor.unwrap_or(1.0));
        tally.add_own(sample);
        tally.add_total(sample);
    }

    #[test]
    fn a_sample_counts_for_half_as_much_after_each_half_life() {
        let (mut clock, mut tally) = (Clock::default(), Tally::default());
        add(&mut clock, &mut tally, 100.0);
        let recent = |now: f64| clock.share(&tally, LiveSpan::Recent, at(now)).own;
        assert_eq!(recent(100.0).samples, 1.0);
        assert_eq!(recent(100.0 + HALF_LIFE).samples, 0.5);
        assert_eq!(recent(100.0 + 2.0 * HALF_LIFE).period, 2.5);
        let all = clock.share(&tally, LiveSpan::SinceStart, at(1e6));
        assert_eq!((all.own.samples, all.own.period), (1.0, 10.0));
    }

    #[test]
    fn a_recording_of_weeks_stays_finite_and_right() {
        let (mut clock, mut tally) = (Clock::default(), Tally::default());
        let last = 3_000_000.0;
        for second in (0..=3_000_000).step_by(500) {
            add(&mut clock, &mut tally, f64::from(second));
        }
        let recent = clock.share(&tally, LiveSpan::Recent, at(last)).total;
        assert!((recent.samples - 1.0).abs() < 1e-9, "{recent:?}");
        let all = clock.share(&tally, LiveSpan::SinceStart, at(last)).total;
        assert_eq!(all.samples, 6001.0);
    }

    #[test]
    fn a_row_that_is_twice_on_a_stack_counts_once() {
        let (mut clock, mut tally) = (Clock::default(), Tally::default());
        let (sample, _) = clock.count(at(1.0), 10);
        tally.add_total(sample);
        tally.add_total(sample);
        let share = clock.share(&tally, LiveSpan::SinceStart, at(1.0));
        assert_eq!(share.total.samples, 1.0);
    }

    #[test]
    fn a_sample_from_before_the_first_one_is_older() {
        let (mut clock, mut tally) = (Clock::default(), Tally::default());
        add(&mut clock, &mut tally, 100.0);
        add(&mut clock, &mut tally, 100.0 - HALF_LIFE);
        let recent = clock.share(&tally, LiveSpan::Recent, at(100.0)).own;
        assert_eq!(recent.samples, 1.5);
    }
}
