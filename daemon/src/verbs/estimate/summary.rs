//! What `varid estimate` prints.

use crate::cli::SummaryFormat;
use crate::output::{self, Align};
use serde::Serialize;
use std::time::Duration;
use varid_estimate::{CacheSummary, Estimate, OpcodeCost, Price, Target};

/// The most instructions, with or without a cost, that people are shown.
const MOST: usize = 10;

/// The result, for programs.
#[derive(Debug, Serialize)]
pub struct Summary {
    target: String,
    unit: String,
    /// None if only bounds are known.
    cycles: Option<u64>,
    low: u64,
    /// None if it is not bounded.
    high: Option<u64>,
    instructions: u64,
    calls: u64,
    uncosted: Vec<Uncosted>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    opcodes: Vec<Opcode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<Cache>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Uncosted {
    #[serde(skip_serializing_if = "Option::is_none")]
    opcode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    executions: u64,
    /// A percentage of the instructions.
    share: f64,
}

/// What the executions of an opcode cost.
#[derive(Debug, Serialize)]
struct Opcode {
    opcode: &'static str,
    executions: u64,
    cycles: f64,
    low: f64,
    /// None if it is not bounded.
    high: Option<f64>,
}

/// What was measured, beside the estimate.
#[derive(Debug, Serialize)]
struct Measured {
    ns: u64,
    /// By how much the estimate is higher, as a percentage of what was measured.
    error: f64,
    /// Whether what was measured lies between the estimate's bounds.
    within_bounds: bool,
}

#[derive(Debug, Serialize)]
struct Cache {
    size: u32,
    blocks: u32,
    cycles: u64,
    low: u64,
    high: Option<u64>,
    hits: u64,
    misses: u64,
}

impl Summary {
    pub fn new(
        target: &Target,
        found: &Estimate,
        is_interval: bool,
        caches: &[CacheSummary],
    ) -> Self {
        let (low, cycles, high) = rounded(found.total);
        let uncosted = found.uncosted.iter().map(|one| Uncosted {
            opcode: (!one.is_method).then(|| one.name.clone()),
            method: one.is_method.then(|| one.name.clone()),
            executions: one.executions,
            share: one.share * 100.0,
        });
        let sweep = caches.iter().map(|cache| {
            let (low, cycles, high) = rounded(cache.total);
            Cache {
                size: cache.geometry.size,
                blocks: cache.geometry.blocks,
                cycles,
                low,
                high,
                hits: cache.hits,
                misses: cache.misses,
            }
        });
        Self {
            target: target.name.clone(),
            unit: target.unit.clone(),
            cycles: (!is_interval).then_some(cycles),
            low,
            high,
            instructions: found.instructions,
            calls: found.calls,
            uncosted: uncosted.collect(),
            opcodes: Vec::new(),
            measured: None,
            sweep: sweep.collect(),
            notes: found.notes.clone(),
        }
    }

    /// Adds what the executions of each opcode cost, the most expensive first.
    pub fn with_opcodes(mut self, costs: &[OpcodeCost]) -> Self {
        let opcodes = costs.iter().map(|one| Opcode {
            opcode: one.opcode,
            executions: one.executions,
            cycles: one.cost.value,
            low: one.cost.low,
            high: Some(one.cost.high).filter(|high| high.is_finite()),
        });
        self.opcodes = opcodes.collect();
        self
    }

    /// Adds a time, above 0, that was measured, and compares the estimate in nanoseconds with it.
    pub fn with_measured(mut self, time: Duration, total: Price) -> Self {
        let ns = time.as_secs_f64() * 1e9;
        self.measured = Some(Measured {
            ns: ns.round() as u64,
            error: (total.value / ns - 1.0) * 100.0,
            within_bounds: (total.low..=total.high).contains(&ns),
        });
        self
    }

    pub fn print(&self, format: SummaryFormat) -> anyhow::Result<()> {
        match format {
            SummaryFormat::Json => output::json(self),
            SummaryFormat::Text => output::text(&self.text()),
        }
    }

    fn text(&self) -> String {
        let Self {
            target,
            unit,
            low,
            high,
            ..
        } = self;
        let counted = format!("{} instructions, {} calls", self.instructions, self.calls);
        let high = high.map_or("no bound".to_owned(), |high| high.to_string());
        let mut text = match self.cycles {
            Some(cycles) if low.to_string() == high => {
                format!("{target}: {cycles} {unit} for {counted}\n")
            }
            Some(cycles) => format!("{target}: {cycles} {unit} ({low} to {high}) for {counted}\n"),
            None => format!(
                "{target}: {low} to {high} {unit} for {counted}: between a method cache that always has the code and one that never has it; 'varid exact --call-order' keeps what decides it\n"
            ),
        };
        if let Some(Measured {
            ns,
            error,
            within_bounds,
        }) = &self.measured
        {
            let side = if *error < 0.0 { "below" } else { "above" };
            let bounds = if *within_bounds {
                "within"
            } else {
                "outside of"
            };
            text += &format!(
                "measured: {ns} ns, {bounds} the bounds; the estimate is {:.1} % {side} it\n",
                error.abs()
            );
        }
        for one in self.uncosted.iter().take(MOST) {
            let what = match (&one.opcode, &one.method) {
                (Some(opcode), _) => format!("{opcode} has no known cost"),
                (None, Some(method)) => format!("what {method} executes is not known"),
                (None, None) => continue,
            };
            let (executions, share) = (one.executions, one.share);
            text += &format!(
                "uncosted: {what}: {executions} times, {share:.2} % of the instructions\n"
            );
        }
        if let Some(more) = self
            .uncosted
            .len()
            .checked_sub(MOST)
            .filter(|more| *more > 0)
        {
            text += &format!("uncosted: {more} more: --summary json lists them\n");
        }
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        if !self.opcodes.is_empty() {
            text.push('\n');
            text += &self.opcode_table();
        }
        if !self.sweep.is_empty() {
            text.push('\n');
            text += &self.cache_table();
        }
        text
    }

    fn opcode_table(&self) -> String {
        let all: f64 = self.opcodes.iter().map(|one| one.cycles).sum();
        let rows = self.opcodes.iter().take(MOST).map(|one| {
            [
                one.executions.to_string(),
                format!("{:.0}", one.cycles),
                format!("{:.2}", one.cycles / all.max(f64::MIN_POSITIVE) * 100.0),
                one.opcode.to_owned(),
            ]
        });
        let rows: Vec<_> = rows.collect();
        let (right, left) = (Align::Right, Align::Left);
        let head = [
            ("executions", right),
            (self.unit.as_str(), right),
            ("%", right),
            ("opcode", left),
        ];
        let mut text = output::table(head, &rows);
        let more = self.opcodes.len().saturating_sub(rows.len());
        if more > 0 {
            text += &format!("and {more} more: --summary json lists them\n");
        }
        text
    }

    fn cache_table(&self) -> String {
        let head = ["size", "blocks", self.unit.as_str(), "%", "misses", "hits"];
        let least = self
            .sweep
            .iter()
            .map(|cache| cache.cycles)
            .min()
            .unwrap_or_default();
        let rows: Vec<_> = self
            .sweep
            .iter()
            .map(|cache| {
                let more = cache.cycles.saturating_sub(least) as f64 / least.max(1) as f64;
                [
                    cache.size.to_string(),
                    cache.blocks.to_string(),
                    cache.cycles.to_string(),
                    format!("+{:.2}", more * 100.0),
                    cache.misses.to_string(),
                    cache.hits.to_string(),
                ]
            })
            .collect();
        output::table(head.map(|title| (title, Align::Right)), &rows)
    }
}

/// Returns low, value and high as whole numbers. Costs are not negative. None: there is no upper bound.
fn rounded(price: Price) -> (u64, u64, Option<u64>) {
    let round = |number: f64| number.round() as u64;
    let high = price.high.is_finite().then(|| round(price.high));
    (round(price.low), round(price.value), high)
}
