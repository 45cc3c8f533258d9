//! What is known of a function of the guest: how often it was interpreted, and its translation.

use std::{collections::BTreeSet, rc::Rc};

use crate::{
    emit::Translation,
    plan::{Entries, VersionId, straddles},
    planner::Planned,
};

/// A function is translated no more often than so.
const MAX_TRANSLATIONS: u32 = 12;

/// A function of the guest.
#[derive(Debug, Default)]
pub struct Function {
    /// The addresses at which it is entered.
    pub entries: Entries,
    /// Where jumps to registers have led.
    pub targets: BTreeSet<u32>,
    /// Its translation. None: it is interpreted.
    pub unit: Option<Rc<Unit>>,
    /// How many blocks were interpreted since it was translated last.
    interpreted: u32,
    translations: u32,
}

/// A function's code with its plan.
#[derive(Debug)]
pub struct Unit {
    /// What was translated.
    pub planned: Planned,
    /// The code.
    pub translation: Translation,
}

impl Function {
    /// Counts a block that has no translation. Returns true if it is time to translate the function, perhaps once more: for the first time
    /// after `hot` blocks.
    pub fn is_due(&mut self, hot: u32) -> bool {
        self.interpreted = self.interpreted.saturating_add(1);
        // Each time, it must have been worth more.
        let due = hot.checked_shl(self.translations).unwrap_or(u32::MAX);
        let is_due = self.interpreted >= due && self.translations < MAX_TRANSLATIONS;
        if is_due {
            self.interpreted = 0;
            self.translations = self.translations.saturating_add(1);
        }
        is_due
    }
}

impl Unit {
    /// Returns true if the code can be entered by the entry with this number.
    pub fn has_entry(&self, number: u32) -> bool {
        let row = (number as usize).checked_sub(1);
        let entry = row.and_then(|row| self.planned.plan.entries.get(row));
        entry.is_some_and(Option::is_some)
    }

    /// Returns the block of an entry. None: the code cannot be entered there.
    pub fn version_of(&self, number: u32) -> Option<VersionId> {
        let row = (number as usize).checked_sub(1)?;
        *self.planned.plan.entries.get(row)?
    }

    /// Returns true if it has all entries of an earlier translation.
    pub fn has_entries_of(&self, earlier: &Self) -> bool {
        let entries = earlier
            .planned
            .plan
            .entries
            .iter()
            .zip(&self.planned.plan.entries);
        self.planned.plan.entries.len() >= earlier.planned.plan.entries.len()
            && entries
                .into_iter()
                .all(|(before, now)| before.is_none() || now.is_some())
    }

    /// Returns whether the instruction of an entry lies in two words of memory. None: the code cannot be entered there.
    pub fn straddles(&self, number: u32) -> Option<bool> {
        let version = self.version_of(number)?;
        let block = &self.planned.plan.versions.get(version.0)?.block;
        Some(straddles(block.start, block))
    }
}
