//! The session that `varid estimate` writes: the costs are further counters of its contexts.

use anyhow::Context;
use std::path::Path;
use varid_estimate::{CacheSummary, Estimate, Price, Target, WholeCosts};
use varid_recording::{
    AddedCounter, Additions, ContextCounter, Contexts, EstimatedCache, EstimatedMeasure,
    SessionReader, copy_with_counters,
};

/// What was priced how, as the written session says it.
#[derive(Debug, Clone, Copy)]
pub struct Assumptions<'a> {
    pub target: &'a Target,
    /// The target's values that were replaced, as KEY=VALUE.
    pub settings: &'a [String],
    /// The method whose calls were priced. None: all were.
    pub within: Option<&'a str>,
    /// Whether only bounds are known.
    pub is_interval: bool,
    /// The method caches that were compared.
    pub caches: &'a [CacheSummary],
}

impl Assumptions<'_> {
    /// Describes the estimate in a sentence.
    fn note(&self, name: &str) -> String {
        let within = self
            .within
            .map(|method| format!(" of the calls of {method}"));
        let settings = match self.settings {
            [] => String::new(),
            settings => format!(", with {}", settings.join(", ")),
        };
        format!(
            "{name} is an estimate{}{settings}: 'varid estimate' has computed it",
            within.unwrap_or_default()
        )
    }
}

/// Writes the session. Where only bounds are known, it has both as measures.
pub fn write(
    session: &SessionReader,
    contexts: &Contexts,
    assumptions: &Assumptions<'_>,
    found: &Estimate,
    folder: &Path,
) -> anyhow::Result<()> {
    let Assumptions {
        target,
        is_interval,
        ..
    } = *assumptions;
    let name = format!("{} ({})", target.unit, target.name);
    let value = |price: Price| price.value;
    let low = |price: Price| price.low;
    let high = |price: Price| price.high;
    let least = found.whole(if is_interval { low } else { value });
    let least = least.context("the costs are above 2^64: a session cannot have them")?;
    let most = found.whole(high).filter(|_| is_interval);
    let columns: Vec<(String, WholeCosts)> = match (is_interval, most) {
        (false, _) => vec![(name.clone(), least)],
        (true, None) => vec![(format!("least {name}"), least)],
        (true, Some(most)) => vec![
            (format!("least {name}"), least),
            (format!("most {name}"), most),
        ],
    };
    let mut notes = vec![assumptions.note(&name)];
    if is_interval && columns.len() == 1 {
        notes.push(format!("{name} has no upper bound"));
    }
    let uncosted = found.uncosted.iter().take(3);
    notes.extend(uncosted.map(|one| {
        format!(
            "{name}: {} costs nothing in it, {:.2} % of the instructions",
            one.name,
            one.share * 100.0
        )
    }));
    notes.extend(found.notes.iter().cloned());
    let counters = columns.iter().map(|(name, values)| AddedCounter {
        counter: ContextCounter {
            name: name.clone(),
            unit: target.unit.clone(),
        },
        values,
    });
    let estimates = columns.iter().map(|(name, _)| EstimatedMeasure {
        measure: name.clone(),
        target: target.name.clone(),
        settings: assumptions.settings.to_vec(),
        within: assumptions.within.map(str::to_owned),
        caches: assumptions.caches.iter().map(estimated_cache).collect(),
    });
    let additions = Additions {
        counters: counters.collect(),
        estimates: estimates.collect(),
        notes,
    };
    copy_with_counters(session, contexts, folder, &additions)
        .with_context(|| format!("cannot write the session {}", folder.display()))
}

fn estimated_cache(cache: &CacheSummary) -> EstimatedCache {
    EstimatedCache {
        size: cache.geometry.size,
        blocks: cache.geometry.blocks,
        cost: cache.total.value.round() as u64,
    }
}
