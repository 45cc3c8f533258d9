//! How are costs distributed: quartiles, outliers, clusters, and how do those by two clocks agree?

use crate::quantile::quantile;
use crate::solve::{Cost, Costs};
use crate::tally::CostKey;

/// Six numbers that describe costs, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quartiles {
    /// The least cost.
    pub least: f64,
    /// A quarter of the costs is below.
    pub first: f64,
    /// Half of them is below.
    pub median: f64,
    /// Three quarters of them are below.
    pub third: f64,
    /// Their mean.
    pub mean: f64,
    /// The greatest cost.
    pub greatest: f64,
}

impl Quartiles {
    /// Computes the quartiles of costs. None if there are none.
    #[must_use]
    pub fn new(costs: &[&Cost]) -> Option<Self> {
        let mut values: Vec<f64> = costs.iter().map(|cost| cost.value).collect();
        #[allow(clippy::cast_precision_loss, reason = "some hundred keys")]
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let mut at = |share| quantile(&mut values, share);
        (!costs.is_empty()).then(|| Self {
            least: at(0.0),
            first: at(0.25),
            median: at(0.5),
            third: at(0.75),
            mean,
            greatest: at(1.0),
        })
    }

    /// Returns the cost beyond which a key is an outlier, by Tukey's rule: one and a half interquartile ranges above the third quartile.
    #[must_use]
    pub fn fence(&self) -> f64 {
        self.third + 1.5 * (self.third - self.first)
    }
}

/// Groups costs, in increasing order, such that those of a group differ by at most `granularity`: from each cost by itself on, the two neighbouring
/// groups whose union spans least are joined.
#[must_use]
pub fn clusters<'a>(costs: &[&'a Cost], granularity: f64) -> Vec<Vec<&'a Cost>> {
    let mut sorted = costs.to_vec();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value).then_with(|| a.key.cmp(&b.key)));
    let mut groups: Vec<Vec<&Cost>> = sorted.into_iter().map(|cost| vec![cost]).collect();
    loop {
        let spans = groups.windows(2).enumerate().filter_map(|(at, pair)| {
            let [left, right] = pair else { return None };
            Some((at, right.last()?.value - left.first()?.value))
        });
        let least = spans.min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((at, _)) = least.filter(|(_, span)| *span <= granularity) else {
            return groups;
        };
        let right = groups.remove(at.saturating_add(1));
        if let Some(left) = groups.get_mut(at) {
            left.extend(right);
        }
    }
}

/// How costs by a second clock depend on those by the first one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Pearson's correlation coefficient.
    pub r: f64,
    /// By how much the second clock's cost grows with the first one's.
    pub slope: f64,
    /// The second clock's cost where the first one's is 0, in nanoseconds.
    pub intercept: f64,
    /// The number of keys.
    pub keys: usize,
}

impl Agreement {
    /// Compares the costs of keys by two clocks. None if fewer than two keys have costs, or all have the same.
    #[must_use]
    pub fn new(first: &Costs, second: &Costs, keys: &[CostKey]) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = keys
            .iter()
            .filter_map(|key| Some((first.get(key)?.value, second.get(key)?.value)))
            .collect();
        #[allow(clippy::cast_precision_loss, reason = "some hundred keys")]
        let count = pairs.len() as f64;
        let mean_x = pairs.iter().map(|pair| pair.0).sum::<f64>() / count;
        let mean_y = pairs.iter().map(|pair| pair.1).sum::<f64>() / count;
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in &pairs {
            let (x, y) = (x - mean_x, y - mean_y);
            (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
        }
        let slope = xy / xx;
        (xx > 0.0 && yy > 0.0).then(|| Self {
            r: xy / (xx * yy).sqrt(),
            slope,
            intercept: mean_y - slope * mean_x,
            keys: pairs.len(),
        })
    }

    /// Returns by how much the line predicts more than a key's cost by the second clock, in nanoseconds.
    #[must_use]
    pub fn residual(&self, first: &Cost, second: &Cost) -> f64 {
        self.intercept + self.slope * first.value - second.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::solve::Origin;

    fn costs(values: &[f64]) -> Vec<Cost> {
        let cost = |(number, value): (usize, &f64)| Cost {
            key: CostKey::new(format!("{number}")),
            value: *value,
            low: *value,
            high: *value,
            measured: 1,
            origin: Origin::Measured,
        };
        values.iter().enumerate().map(cost).collect()
    }

    #[test]
    fn clusters_span_at_most_their_granularity() {
        let all = costs(&[1.0, 10.0, 1.5, 2.1, 10.2, 2.2]);
        let all: Vec<&Cost> = all.iter().collect();
        let sizes = |granularity| {
            let groups = clusters(&all, granularity);
            groups.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(0.0), [1, 1, 1, 1, 1, 1]);
        assert_eq!(sizes(0.5), [2, 2, 2]);
        assert_eq!(sizes(1.3), [4, 2]);
        assert_eq!(sizes(10.0), [6]);
    }

    #[test]
    fn a_line_has_its_slope_and_r_of_one() {
        let by = |clock, values: &[f64]| Costs {
            clock,
            costs: costs(values),
            units: 0,
            deviation: 0.0,
        };
        let first = by(Clock::Nano, &[1.0, 2.0, 4.0]);
        let second = by(Clock::Counter, &[2.5, 4.5, 8.5]);
        let keys: Vec<_> = (0..3)
            .map(|number| CostKey::new(format!("{number}")))
            .collect();
        let agreement = Agreement::new(&first, &second, &keys).unwrap();
        assert!((agreement.r - 1.0).abs() < 1e-12);
        assert!((agreement.slope - 2.0).abs() < 1e-12);
        assert!((agreement.intercept - 0.5).abs() < 1e-12);
        let residual = agreement.residual(&first.costs[0], &second.costs[1]);
        assert!((residual - (2.5 - 4.5)).abs() < 1e-12);
        assert!(Agreement::new(&first, &second, &keys[..1]).is_none());
    }

    #[test]
    fn outliers_are_beyond_tukey_s_fence() {
        let all = costs(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let quartiles = Quartiles::new(&all.iter().collect::<Vec<_>>()).unwrap();
        assert!((quartiles.fence() - 7.0).abs() < 1e-12);
        assert!(Quartiles::new(&[]).is_none());
    }
}
