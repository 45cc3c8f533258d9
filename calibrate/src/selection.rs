//! Which units are measured?

use crate::error::Error;
use crate::tally::Tally;
use std::collections::BTreeSet;

/// Which units are measured?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// These, by the opcodes that they are named after, and those that they need.
    Only(Vec<String>),
}

impl Selection {
    /// Returns the units that are selected. `name` and `tally` are a unit's name, and what it executes where it is measured.
    ///
    /// # Errors
    ///
    /// Nothing is selected.
    pub(crate) fn choose<U>(
        &self,
        units: Vec<U>,
        name: impl Fn(&U) -> &str,
        tally: impl Fn(&U) -> Tally,
    ) -> Result<Vec<U>, Error> {
        let Self::Only(names) = self else {
            return Ok(units);
        };
        let mut wanted: BTreeSet<String> = names.iter().cloned().collect();
        loop {
            let before = wanted.len();
            let chosen = units.iter().filter(|unit| wanted.contains(name(unit)));
            let needed: Vec<_> = chosen.map(&tally).collect();
            let keys = needed.iter().flat_map(Tally::iter);
            wanted.extend(keys.map(|(key, _)| key.as_str().to_owned()));
            if wanted.len() == before {
                break;
            }
        }
        let chosen: Vec<U> = units
            .into_iter()
            .filter(|unit| wanted.contains(name(unit)))
            .collect();
        match chosen.is_empty() {
            true => Err(Error::Unsolved("no unit has one of these names")),
            false => Ok(chosen),
        }
    }
}
