//! Statistical tests of differences.
//!
//! All tests are two-sided. They use the distributions of the statrs crate. The expected values of the unit tests come
//! from `tests/oracle/statistics_values.py`.

use statrs::function::{beta::checked_beta_reg, factorial::ln_binomial};

/// Tolerance of comparisons of probabilities, as a difference of logarithms: both values are rounded.
const ROUNDING: f64 = 1e-7;

/// Some of the samples of a side.
#[derive(Debug, Clone, Copy)]
pub struct Proportion {
    pub part: u64,
    pub all: u64,
}

/// Fisher's exact test of the hypothesis that two parts have the same probability.
pub fn two_proportions(one: Proportion, other: Proportion) -> f64 {
    let (n, m) = (one.all, other.all);
    let (x, y) = (one.part.min(n), other.part.min(m));
    let (all, in_row) = (n.saturating_add(m), x.saturating_add(y));
    let ln_all = ln_binomial(all, in_row);
    let lowest = in_row.saturating_sub(m);
    let highest = in_row.min(n);
    // (in_row + 1) (n + 1) / (all + 2)
    let plus = |number: u64, more| u128::from(number).saturating_add(more);
    let product = plus(in_row, 1).saturating_mul(plus(n, 1));
    let mode = product.checked_div(plus(all, 2)).unwrap_or_default();
    let mode = u64::try_from(mode).unwrap_or(u64::MAX);
    let distribution = Distribution {
        lowest,
        highest,
        mode: mode.clamp(lowest, highest),
        ln_probability: |x| ln_binomial(n, x) + ln_binomial(m, in_row.saturating_sub(x)) - ln_all,
    };
    distribution.two_sided(x)
}

/// A number of events in an exposure, which is positive and finite.
#[derive(Debug, Clone, Copy)]
pub struct EventRate {
    pub events: u64,
    pub exposure: f64,
}

/// The conditional binomial test of the hypothesis that two rates are the same.
pub fn two_rates(one: EventRate, other: EventRate) -> f64 {
    let x = one.events;
    let all = x.saturating_add(other.events);
    let part = one.exposure / (one.exposure + other.exposure);
    let (ln_part, ln_rest) = (part.ln(), (-part).ln_1p());
    if !(ln_part.is_finite() && ln_rest.is_finite()) {
        return 1.0;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // It is between 0 and all + 1.
    let mode = ((real(all) + 1.0) * part) as u64;
    let distribution = Distribution {
        lowest: 0,
        highest: all,
        mode: mode.min(all),
        ln_probability: |x| {
            ln_binomial(all, x) + real(x) * ln_part + real(all.saturating_sub(x)) * ln_rest
        },
    };
    distribution.two_sided(x)
}

/// A discrete unimodal distribution.
struct Distribution<F> {
    lowest: u64,
    highest: u64,
    mode: u64,
    ln_probability: F,
}

impl<F: Fn(u64) -> f64> Distribution<F> {
    /// The probability of all values that are at most as probable as the observed one.
    fn two_sided(&self, observed: u64) -> f64 {
        let bound = (self.ln_probability)(observed) + ROUNDING;
        // Two neighbours may both be the mode.
        if observed == self.mode || (self.ln_probability)(self.mode) <= bound {
            return 1.0;
        }
        let is_rare = |x: u64| (self.ln_probability)(x) <= bound;
        let (below, above) = if observed < self.mode {
            let above = first(self.mode.saturating_add(1), self.highest, is_rare);
            (Some(observed), above)
        } else {
            // Distances below the mode.
            let down = |distance: u64| is_rare(self.mode.saturating_sub(distance));
            let below = first(1, self.mode.saturating_sub(self.lowest), down);
            let below = below.map(|distance| self.mode.saturating_sub(distance));
            (below, Some(observed))
        };
        let below = below.map_or(0.0, |x| self.sum((self.lowest..=x).rev()));
        let above = above.map_or(0.0, |x| self.sum(x..=self.highest));
        (below + above).min(1.0)
    }

    /// Sums decreasing probabilities.
    fn sum(&self, numbers: impl Iterator<Item = u64>) -> f64 {
        let mut sum = 0.0;
        for x in numbers {
            let probability = (self.ln_probability)(x).exp();
            sum += probability;
            if probability <= sum * f64::EPSILON {
                break;
            }
        }
        sum
    }
}

/// Returns the first number in a range that passes a test. The test must hold for all numbers after it.
fn first(mut from: u64, to: u64, test: impl Fn(u64) -> bool) -> Option<u64> {
    if from > to || !test(to) {
        return None;
    }
    let mut found = to;
    while from < found {
        let middle = from.midpoint(found);
        if test(middle) {
            found = middle;
        } else {
            from = middle.saturating_add(1);
        }
    }
    Some(found)
}

/// Welch's t-test of two means. If one side has a single value, it is Student's t-test with the variance of the other
/// side. None if both have one.
pub fn two_means(one: &[f64], other: &[f64]) -> Option<f64> {
    let (one, other) = (Sample::of(one)?, Sample::of(other)?);
    let (error, freedom) = match (one.count > 1.0, other.count > 1.0) {
        (false, false) => return None,
        (true, true) => {
            let [a, b] = [&one, &other].map(|side| side.squares / (side.count - 1.0) / side.count);
            let spread = a * a / (one.count - 1.0) + b * b / (other.count - 1.0);
            (a + b, (a + b) * (a + b) / spread)
        }
        _ => {
            let freedom = one.count + other.count - 2.0;
            let variance = (one.squares + other.squares) / freedom;
            (variance * (1.0 / one.count + 1.0 / other.count), freedom)
        }
    };
    let difference = one.mean - other.mean;
    if error <= 0.0 {
        return Some(if difference == 0.0 { 1.0 } else { 0.0 });
    }
    let t_squared = difference * difference / error;
    // Student's distribution computed by the incomplete beta function, which is accurate in the tails.
    checked_beta_reg(freedom / 2.0, 0.5, freedom / (freedom + t_squared)).ok()
}

struct Sample {
    count: f64,
    mean: f64,
    /// The sum of squared deviations from the mean.
    squares: f64,
}

impl Sample {
    fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = real(u64::try_from(values.len()).unwrap_or(u64::MAX));
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean) * (value - mean));
        Some(Self {
            count,
            mean,
            squares: squares.sum(),
        })
    }
}

/// Benjamini and Hochberg's correction: for each test, the smallest false discovery rate at which it is significant.
pub fn false_discovery_rates(probabilities: &[f64]) -> Vec<f64> {
    let count = real(u64::try_from(probabilities.len()).unwrap_or(u64::MAX));
    let mut order: Vec<(usize, f64)> = probabilities.iter().copied().enumerate().collect();
    order.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut rates = vec![1.0; probabilities.len()];
    let mut smallest = 1.0_f64;
    let ranks = (1..=u64::try_from(order.len()).unwrap_or(u64::MAX)).rev();
    for (rank, (place, probability)) in ranks.zip(order.into_iter().rev()) {
        smallest = smallest.min(probability * count / real(rank));
        if let Some(rate) = rates.get_mut(place) {
            *rate = smallest;
        }
    }
    rates
}

#[allow(clippy::cast_precision_loss)] // there are fewer samples than 2^53
pub const fn real(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
#[allow(clippy::unreadable_literal, clippy::excessive_precision)] // they are as scipy prints them
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    /// Returns true if the values are equal except for rounding.
    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= 2e-6 * expected
    }

    // These values are from tests/oracle/statistics_values.py.
    fn proportion((part, all): (u64, u64)) -> Proportion {
        Proportion { part, all }
    }

    fn rate((events, exposure): (u64, f64)) -> EventRate {
        EventRate { events, exposure }
    }

    #[test]
    fn two_proportions_are_as_likely_as_scipy_says() {
        for (one, other, expected) in [
            ((0, 10), (0, 10), 1.0),
            ((4, 15), (0, 3), 1.0),
            ((0, 3), (4, 15), 1.0),
            ((1, 10), (9, 10), 0.001093333910671372),
            ((3, 7), (2, 9), 0.596153846153846),
            ((0, 1000), (12, 900), 0.0001227435460794093),
            ((120, 1000), (180, 1000), 0.00021198439482625865),
            ((500, 1000), (510, 1003), 0.7207854228604522),
            ((240, 1932), (45, 792), 5.902966167806877e-08),
            ((568, 6679), (144, 792), 1.0944673524431514e-15),
            ((10000, 100000), (10400, 100000), 0.00319814704465315),
            ((5, 1000000), (60, 1200000), 3.8911433019681656e-11),
            ((3000, 10000), (1000, 10000), 9.409593560658345e-284),
        ] {
            let found = two_proportions(proportion(one), proportion(other));
            assert!(near(found, expected), "{one:?} {other:?}: {found}");
        }
    }

    #[test]
    fn two_rates_are_as_likely_as_scipy_says() {
        for (one, other, expected) in [
            ((0, 1.0), (0, 1.0), 1.0),
            ((3, 1.0), (12, 1.0), 0.03515625),
            ((100, 1.0), (150, 1.0), 0.0018833009350761602),
            ((100, 2.0), (150, 3.0), 1.0),
            ((1000, 1.0), (1200, 1.0), 2.1817026407914194e-05),
            ((7, 0.25), (100, 4.5), 0.5128025084821852),
            ((20000, 1.0), (21000, 1.0), 8.058578026793151e-07),
            ((1000000, 1.0), (1010000, 1.0), 1.7539685614366628e-12),
            ((500, 3.0), (2000, 3.0), 2.855087369006384e-211),
        ] {
            let found = two_rates(rate(one), rate(other));
            assert!(near(found, expected), "{one:?} {other:?}: {found}");
        }
    }

    #[test]
    fn two_means_are_as_likely_as_scipy_says() {
        let values: &[(&[f64], &[f64], f64)] = &[
            (
                &[12.1, 12.4, 12.2],
                &[14.0, 14.3, 13.8],
                0.0011701050562873347,
            ),
            (
                &[1.0, 2.0, 3.0, 4.0, 5.0],
                &[2.0, 2.5, 3.5],
                0.7031799240047805,
            ),
            (&[10.0, 10.1], &[10.2, 10.05], 0.5038378637419375),
            (
                &[20.01, 20.02, 19.99, 20.0, 20.03],
                &[30.0, 30.05, 29.96, 30.02, 30.01],
                3.981812747152165e-15,
            ),
            (&[5.0], &[5.5, 5.6, 5.4], 0.0494136242132828),
            (&[7.0, 7.2], &[9.0], 0.057874656698390155),
        ];
        for &(one, other, expected) in values {
            let found = two_means(one, other).unwrap();
            assert!(near(found, expected), "{one:?} {other:?}: {found}");
        }
        assert_eq!(two_means(&[1.0], &[2.0]), None);
        assert_eq!(two_means(&[1.0, 1.0], &[1.0]), Some(1.0));
        assert_eq!(two_means(&[1.0, 1.0], &[2.0, 2.0]), Some(0.0));
    }

    #[test]
    fn false_discovery_rates_are_scipy_s() {
        let values: &[(&[f64], &[f64])] = &[
            (
                &[0.01, 0.04, 0.03, 0.5],
                &[0.04, 0.05333333333333333, 0.05333333333333333, 0.5],
            ),
            (&[0.9, 0.8, 0.7], &[0.9, 0.9, 0.9]),
            (
                &[1e-12, 0.05, 0.051, 0.0001, 1.0, 0.04],
                &[
                    6e-12,
                    0.06119999999999999,
                    0.06119999999999999,
                    0.00030000000000000003,
                    1.0,
                    0.06119999999999999,
                ],
            ),
            (&[0.2], &[0.2]),
        ];
        for &(probabilities, expected) in values {
            let found = false_discovery_rates(probabilities);
            let pairs = || found.iter().zip(expected);
            assert!(
                pairs().all(|(found, expected)| near(*found, *expected)),
                "{found:?}"
            );
        }
    }

    /// The sum of the probabilities that are at most that of `observed`.
    fn counted(probabilities: &[f64], observed: usize) -> f64 {
        let bound = probabilities[observed] * (1.0 + ROUNDING);
        let rare = probabilities
            .iter()
            .filter(|probability| **probability <= bound);
        rare.sum::<f64>().min(1.0)
    }

    /// The number of subsets of size k.
    fn subsets(n: u64, k: u64) -> f64 {
        (1..=k).map(|i| (n - k + i) as f64 / i as f64).product()
    }

    proptest! {
        #[test]
        fn two_proportions_equal_a_count_over_all_outcomes(
            (n, m) in (1..40u64, 1..40u64), (x, y) in (0.0..=1.0, 0.0..=1.0),
        ) {
            let (x, y) = ((x * n as f64) as u64, (y * m as f64) as u64);
            let k = x + y;
            let all: Vec<f64> = (0..=k)
                .map(|x| match x <= n && k - x <= m {
                    true => subsets(n, x) * subsets(m, k - x) / subsets(n + m, k),
                    false => 0.0,
                })
                .collect();
            let (found, expected) = (two_proportions(proportion((x, n)), proportion((y, m))), counted(&all, x as usize));
            prop_assert!(near(found, expected), "{} {}", found, expected);
            let swapped = two_proportions(proportion((y, m)), proportion((x, n)));
            prop_assert!(near(found, swapped), "{} {}", found, swapped);
        }

        #[test]
        fn two_rates_equal_a_count_over_all_outcomes(
            (x, y) in (0..60u64, 0..60u64), (one, other) in (0.01..100.0, 0.01..100.0),
        ) {
            let (k, part): (u64, f64) = (x + y, one / (one + other));
            let all: Vec<f64> = (0..=k)
                .map(|x| subsets(k, x) * part.powi(x as i32) * (1.0 - part).powi((k - x) as i32))
                .collect();
            let (found, expected) = (two_rates(rate((x, one)), rate((y, other))), counted(&all, x as usize));
            prop_assert!(near(found, expected), "{} {}", found, expected);
        }

        #[test]
        fn a_mean_is_compared_whatever_the_unit(
            (one, other) in (vec(-100.0..100.0, 2..8), vec(-100.0..100.0, 1..8)), scale in 0.001..1000.0,
        ) {
            let found = two_means(&one, &other).unwrap();
            let scaled = [&one, &other].map(|side| side.iter().map(|value| value * scale).collect::<Vec<f64>>());
            let scaled = two_means(&scaled[0], &scaled[1]).unwrap();
            prop_assert!((0.0..=1.0).contains(&found));
            prop_assert!((found - scaled).abs() < 1e-6, "{} {}", found, scaled);
        }

        #[test]
        fn rates_of_false_discovery_keep_the_order_and_are_no_smaller(values in vec(0.0..=1.0, 0..30)) {
            let rates = false_discovery_rates(&values);
            for (value, rate) in values.iter().zip(&rates) {
                prop_assert!(*rate >= value * (1.0 - 1e-12) && *rate <= 1.0);
                for (other, other_rate) in values.iter().zip(&rates) {
                    prop_assert!(value > other || rate <= other_rate);
                }
            }
        }

        #[test]
        fn any_counts_have_a_probability(
            (x, n, y, m) in (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()), exposure in 1e-9..1e9,
        ) {
            // As many as the samples of several days.
            let count = |number: u32| u64::from(number >> 8);
            let found = two_proportions(proportion((count(x), count(n))), proportion((count(y), count(m))));
            prop_assert!((0.0..=1.0).contains(&found), "{}", found);
            let found = two_rates(rate((count(x), exposure)), rate((count(y), 1.0)));
            prop_assert!((0.0..=1.0).contains(&found), "{}", found);
        }
    }
}
