//! The session that `varid estimate` writes: the costs are further counters of its contexts.

use anyhow::Context;
use std::path::Path;
use varid_estimate::{Estimate, Price, Target, WholeCosts};
use varid_recording::{AddedCounter, ContextCounter, Contexts, SessionReader, copy_with_counters};

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
    copy_with_counters(session, contexts, folder, &added, &notes)
        .with_context(|| format!("cannot write the session {}", folder.display()))
}
