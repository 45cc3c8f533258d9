//! The session that `varid estimate` writes: the costs are further counters of its contexts.

use anyhow::Context;
use std::path::Path;
use varid_estimate::{Estimate, Price, Target};
use varid_recording::{AddedCounter, ContextCounter, Contexts, SessionReader, copy_with_counters};

/// The counts of a counter, by node.
type Values = Vec<Vec<(Option<u32>, u64)>>;

/// Writes the session. Where only bounds are known, it has both as measures.
pub fn write(
    session: &SessionReader,
    contexts: &Contexts,
    target: &Target,
    found: &Estimate,
    is_interval: bool,
    folder: &Path,
) -> anyhow::Result<()> {
    let name = format!("{} ({})", target.unit, target.name);
    let low = |price: Price| price.low;
    let high = |price: Price| price.high;
    let columns = match is_interval {
        false => vec![(name.clone(), values(found, |price| price.value))],
        true => vec![
            (format!("least {name}"), values(found, low)),
            (format!("most {name}"), values(found, high)),
        ],
    };
    let added = columns.iter().map(|(name, values)| AddedCounter {
        counter: ContextCounter {
            name: name.clone(),
            unit: target.unit.clone(),
        },
        values,
    });
    let added: Vec<_> = added.collect();
    let mut notes = vec![format!(
        "{name} is an estimate: 'varid estimate' has computed it"
    )];
    let uncosted = found.uncosted.iter().take(3);
    notes.extend(uncosted.map(|one| {
        format!(
            "{name}: {} costs nothing in it, {:.2} % of the instructions",
            one.name,
            one.share * 100.0
        )
    }));
    notes.extend(found.notes.iter().cloned());
    copy_with_counters(session, contexts, folder, &added, &notes)
        .with_context(|| format!("cannot write the session {}", folder.display()))
}

/// Returns a part of the costs as whole numbers. Their sum in a context is as if only it had been rounded.
fn values(found: &Estimate, part: impl Fn(Price) -> f64) -> Values {
    let nodes = found.nodes.iter().map(|places| {
        let (mut exact, mut written) = (0.0, 0_u64);
        let costs = places.iter().map(|place| {
            exact += part(place.cost);
            let value = (exact.round() as u64).saturating_sub(written);
            written = written.saturating_add(value);
            (Some(place.place.get()), value)
        });
        costs.collect()
    });
    nodes.collect()
}
