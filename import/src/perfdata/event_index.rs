//! Finds the event of an id, and the event of a sample.

use std::collections::HashMap;

use super::{events::SourceEvent, layout::RecordLayout};

/// Finds the event of a sample.
#[derive(Debug, Default)]
pub struct EventIndex {
    /// In all events of a file, perf puts the id at the same position.
    layout: RecordLayout,
    by_id: HashMap<u64, usize>,
    is_only: bool,
}

impl EventIndex {
    /// Makes the index for the events of a file.
    #[must_use]
    pub fn new(events: &[SourceEvent]) -> Self {
        let ids = events
            .iter()
            .enumerate()
            .flat_map(|(place, event)| event.ids.iter().map(move |id| (*id, place)));
        Self {
            layout: events.first().map(|event| event.layout).unwrap_or_default(),
            by_id: ids.collect(),
            is_only: events.len() == 1,
        }
    }

    /// The index of the event for a sample with this body. None if the sample has no known id.
    #[must_use]
    pub fn event_of(&self, body: &[u8]) -> Option<usize> {
        if self.is_only {
            return Some(0);
        }
        let (id, _) = self.layout.sample_key(body).ok()?;
        self.with_id(id?)
    }

    /// The index of the event with this id.
    #[must_use]
    pub fn with_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// The fields of records other than samples.
    #[must_use]
    pub const fn layout(&self) -> RecordLayout {
        self.layout
    }
}
