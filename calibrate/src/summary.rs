//! What does a calibration say at its end?

use crate::distribution::{Agreement, Quartiles, clusters};
use crate::quantile::median;
use crate::solve::{Cost, Costs, Solved};
use crate::tally::CostKey;
use std::fmt;

/// Half of an interval above this share of its cost, for half of the keys: the machine is too noisy.
const NOISY: f64 = 0.10;
/// The correlation that the paper found.
const PAPER_R: f64 = 0.9888;
/// The number of residuals that are printed, which is the paper's.
const RESIDUALS: usize = 2;

/// A calibration in numbers, as it is printed.
#[derive(Debug)]
pub struct Summary<'a> {
    solved: &'a Solved,
    /// What they cost alone.
    imperative: Vec<&'a Cost>,
    agreement: Option<(Agreement, &'a Costs)>,
    vms: usize,
}

impl<'a> Summary<'a> {
    /// Summarises costs by the first clock, and compares them with those by a second one, over the imperative instructions alone.
    #[must_use]
    pub fn new(
        solved: &'a Solved,
        second: Option<&'a Solved>,
        imperative: &'a [CostKey],
        vms: usize,
    ) -> Self {
        let alone = &solved.alone;
        let agreement = second.and_then(|second| {
            Some((
                Agreement::new(alone, &second.alone, imperative)?,
                &second.alone,
            ))
        });
        Self {
            solved,
            imperative: imperative.iter().filter_map(|key| alone.get(key)).collect(),
            agreement,
            vms,
        }
    }

    /// Returns the agreement of the two clocks. None if there is no second one.
    #[must_use]
    pub fn agreement(&self) -> Option<&Agreement> {
        self.agreement.as_ref().map(|(agreement, _)| agreement)
    }

    /// Returns why the costs are not reliable. None if they are.
    #[must_use]
    pub fn noise(&self) -> Option<String> {
        let uncertainty = uncertainty(&self.solved.alone);
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
        let Solved { alone, in_programs } = self.solved;
        writeln!(
            to,
            "costs of {} keys by {} units of one instruction and {} of many in {} VMs, clock {}",
            alone.costs.len(),
            alone.units,
            in_programs.units,
            self.vms,
            alone.clock
        )?;
        writeln!(
            to,
            "uncertainty (median)   {:.1} % of a cost alone, {:.1} % of one in programs",
            uncertainty(alone) * 100.0,
            uncertainty(in_programs) * 100.0
        )?;
        if in_programs.units > 0 {
            writeln!(
                to,
                "sums of costs          a unit of many instructions differs from them by {:.1} %",
                in_programs.deviation * 100.0
            )?;
        }
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
            let residuals = self.largest_residuals(agreement, second);
            let residuals = residuals
                .iter()
                .map(|(key, ns)| format!("{key} {ns:+.2} ns"));
            let residuals: Vec<_> = residuals.collect();
            writeln!(to, "largest residuals      {}", residuals.join(", "))?;
        }
        let Some(quartiles) = Quartiles::new(&self.imperative) else {
            return Ok(());
        };
        writeln!(
            to,
            "\n# imperative instructions alone, ns\n   min     q1 median     q3   mean    max"
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

/// Returns half the width of the keys' intervals as a share of the cost: the median of all keys with a cost.
fn uncertainty(costs: &Costs) -> f64 {
    let measured = costs.costs.iter().filter(|cost| cost.value > 0.0);
    let mut widths: Vec<f64> = measured
        .map(|cost| (cost.high - cost.low) / 2.0 / cost.value)
        .collect();
    median(&mut widths)
}

impl Summary<'_> {
    /// Returns the imperative instructions that are farthest from the line of both clocks, and by how much it predicts more for each.
    fn largest_residuals(&self, agreement: &Agreement, second: &Costs) -> Vec<(&CostKey, f64)> {
        let residuals = self.imperative.iter().filter_map(|first| {
            let residual = agreement.residual(first, second.get(&first.key)?);
            Some((&first.key, residual))
        });
        let mut residuals: Vec<_> = residuals.collect();
        residuals.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        residuals.truncate(RESIDUALS);
        residuals
    }

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
