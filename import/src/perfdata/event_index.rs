//! Which event is of an id, and which is a sample of?

use std::collections::HashMap;

use super::{events::SourceEvent, layout::RecordLayout};

/// Tells which event a sample is of.
#[derive(Debug, Default)]
pub struct EventIndex {
    /// perf gives all events of a file one place for their ids.
    layout: RecordLayout,
    by_id: HashMap<u64, usize>,
    is_only: bool,
}

impl EventIndex {
    /// For the events of a file.
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

    /// The place of the event that a sample with this body is of; none: it has none of the ids.
    #[must_use]
    pub fn event_of(&self, body: &[u8]) -> Option<usize> {
        if self.is_only {
            return Some(0);
        }
        let (id, _) = self.layout.sample_key(body).ok()?;
        self.with_id(id?)
    }

    /// The place of the event that has this id.
    #[must_use]
    pub fn with_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// The fields of records that are no samples.
    #[must_use]
    pub const fn layout(&self) -> RecordLayout {
        self.layout
    }
}
