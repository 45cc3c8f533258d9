//! What an engine asks that computes the time of blocks once: which lines are fetched if all are there, and where the caches are.

use super::Pipeline;
use crate::cache::{CacheLayout, Replacement, Writes};

/// What a store may change in a data cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// Nothing.
    Nothing,
    /// Which line was used last.
    Recency,
    /// That, which lines are there, and whether they are dirty.
    Contents,
}

/// The caches of a running program. None: there is no such cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheLayouts {
    /// The instruction cache.
    pub instructions: Option<CacheLayout>,
    /// The data cache, and what stores change in it.
    pub data: Option<(CacheLayout, Stores)>,
}

impl Pipeline<'_> {
    /// Where the lines of the caches are.
    #[must_use]
    pub fn caches(&self) -> CacheLayouts {
        let fetches = self.fetches.as_ref();
        let data = self.data.as_ref();
        CacheLayouts {
            instructions: fetches.and_then(|fetches| Some(fetches.cache.as_ref()?.layout())),
            data: data.and_then(|data| {
                let parameters = data.parameters;
                let stores = match (parameters.writes, parameters.replacement) {
                    (Writes::Back, _) => Stores::Contents,
                    (Writes::Through, Replacement::Lru) if parameters.geometry.ways > 1 => {
                        Stores::Recency
                    }
                    (Writes::Through, _) => Stores::Nothing,
                };
                Some((data.cache.as_ref()?.layout(), stores))
            }),
        }
    }

    /// Returns the numbers of the lines that were fetched since the last call, by a pipeline whose accesses are all hits.
    pub fn take_fetched(&mut self) -> Vec<u64> {
        let fetches = self.fetches.as_mut();
        fetches
            .map(|fetches| std::mem::take(&mut fetches.fetched))
            .unwrap_or_default()
    }

    /// Returns true if the last load is repeated if it reads the word that was stored last before it.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        self.data.as_ref().is_some_and(|data| data.may_repeat)
    }

    /// Adds wrong predictions of code that was executed elsewhere.
    pub fn count_mispredicted(&mut self, more: u64) {
        if let Some(count) = &mut self.events.mispredicted {
            *count = count.saturating_add(more);
        }
    }

    /// The address of the word that was stored last, divided by 4.
    #[must_use]
    pub fn stored_word(&self) -> u32 {
        self.data.as_ref().map_or(u32::MAX, |data| data.stored_word)
    }

    /// Says which word was stored last, by code that was executed elsewhere.
    pub fn set_stored_word(&mut self, word: u32) {
        if let Some(data) = &mut self.data {
            data.stored_word = word;
        }
    }
}
