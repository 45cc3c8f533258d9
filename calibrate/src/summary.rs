//! What does a calibration say at its end?

use crate::distribution::{Agreement, Quartiles, clusters};
use crate::quantile::median;
use crate::solve::{Cost, Costs};
use crate::tally::CostKey;
use std::fmt;

/// Half of an interval above this share of its cost, for half of the keys: the machine is too noisy.
const NOISY: f64 = 0.10;
/// The correlation that the paper found.
const PAPER_R: f64 = 0.9888;

/// A calibration in numbers, as it is printed.
#[derive(Debug)]
pub struct Summary<'a> {
    costs: &'a Costs,
    imperative: Vec<&'a Cost>,
    agreement: Option<(Agreement, &'a Costs)>,
    vms: usize,
}

impl<'a> Summary<'a> {
    /// Summarises costs by the first clock, and compares them with those by a second one, over the imperative instructions.
    #[must_use]
    pub fn new(
        costs: &'a Costs,
        second: Option<&'a Costs>,
        imperative: &'a [CostKey],
        vms: usize,
    ) -> Self {
        let agreement =
            second.and_then(|second| Some((Agreement::new(costs, second, imperative)?, second)));
        Self {
            costs,
            imperative: imperative.iter().filter_map(|key| costs.get(key)).collect(),
            agreement,
            vms,
        }
    }

    /// Returns the agreement of the two clocks. None if there is no second one.
    #[must_use]
    pub fn agreement(&self) -> Option<&Agreement> {
        self.agreement.as_ref().map(|(agreement, _)| agreement)
    }

    /// Returns half the width of the keys' intervals as a share of the cost: the median of all keys with a cost.
    #[must_use]
    pub fn uncertainty(&self) -> f64 {
        let measured = self.costs.costs.iter().filter(|cost| cost.value > 0.0);
        let mut widths: Vec<f64> = measured
            .map(|cost| (cost.high - cost.low) / 2.0 / cost.value)
            .collect();
        median(&mut widths)
    }

    /// Returns why the costs are not reliable. None if they are.
    #[must_use]
    pub fn noise(&self) -> Option<String> {
        let uncertainty = self.uncertainty();
        if uncertainty.is_nan() || uncertainty > NOISY {
            return Some(format!(
                "the machine is too noisy: half of the costs are uncertain by more than {:.0} %. Stop other programs, or raise --time",
                uncertainty * 100.0
            ));
        }
        let agreement = self.agreement().filter(|agreement| agreement.r < PAPER_R)?;
        Some(format!(
            "the machine is too noisy: the two clocks agree only to r = {:.4}",
            agreement.r
        ))
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let costs = self.costs;
        writeln!(
            to,
            "costs of {} keys by {} units in {} VMs, clock {}",
            costs.costs.len(),
            costs.units,
            self.vms,
            costs.clock
        )?;
        writeln!(
            to,
            "uncertainty (median)   {:5.1} %   a unit differs from the sum of its costs by {:.1} %",
            self.uncertainty() * 100.0,
            costs.deviation * 100.0
        )?;
        if let Some((agreement, second)) = &self.agreement {
            writeln!(
                to,
                "against {:<14} r = {:.4}, slope {:.3}, intercept {:.3} ns, {} imperative instructions",
                second.clock.to_string(),
                agreement.r,
                agreement.slope,
                agreement.intercept,
                agreement.keys
            )?;
        }
        let Some(quartiles) = Quartiles::new(&self.imperative) else {
            return Ok(());
        };
        writeln!(
            to,
            "\n# imperative instructions, ns\n   min     q1 median     q3   mean    max"
        )?;
        let Quartiles {
            least,
            first,
            median,
            third,
            mean,
            greatest,
        } = quartiles;
        writeln!(
            to,
            "{least:6.2} {first:6.2} {median:6.2} {third:6.2} {mean:6.2} {greatest:6.2}"
        )?;
        self.write_outliers(&quartiles, to)?;
        writeln!(
            to,
            "\n# clusters by granularity\ngranularity     ns  clusters"
        )?;
        let granularities = [
            ("min", least),
            ("q1", first),
            ("median", median),
            ("q3", third),
            ("mean", mean),
            ("max", greatest),
        ];
        for (name, granularity) in granularities {
            let count = clusters(&self.imperative, granularity).len();
            writeln!(to, "{name:<11} {granularity:6.2}  {count:8}")?;
        }
        writeln!(to, "\n# clusters at the median\n     from       to  keys")?;
        for group in clusters(&self.imperative, median) {
            let (Some(low), Some(high)) = (group.first(), group.last()) else {
                continue;
            };
            let names: Vec<_> = group.iter().take(6).map(|cost| cost.key.as_str()).collect();
            let more = group.len().saturating_sub(names.len());
            let names = names.join(", ");
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            writeln!(to, "{:9.2}{:9.2}  {names}{more}", low.value, high.value)?;
        }
        Ok(())
    }
}

impl Summary<'_> {
    fn write_outliers(&self, quartiles: &Quartiles, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fence = quartiles.fence();
        writeln!(to, "\n# outliers, above {fence:.2} ns\n   cost  key")?;
        let outliers = self.imperative.iter().filter(|cost| cost.value > fence);
        let mut outliers: Vec<_> = outliers.collect();
        outliers.sort_by(|a, b| a.value.total_cmp(&b.value));
        for cost in outliers {
            writeln!(to, "{:7.2}  {}", cost.value, cost.key)?;
        }
        Ok(())
    }
}
