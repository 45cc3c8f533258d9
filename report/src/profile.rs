//! A recording as tables, and what is known of it as a whole.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use varid_model::MonotonicNs;
use varid_recording::{ContextCounter, CounterId, EventDesc, Manifest};

use crate::{
    error::{Error, Result},
    frames::FrameTable,
    missing_files::MissingFile,
    naming::ImageFileState,
    options::Options,
    sampled_addresses::SampledAddress,
    sampled_frames::SampledFrame,
    samples::SampleTable,
    stacks::StackTable,
    tasks::TaskTable,
    weights::{EventId, SampleWeight, WeightTable},
};

/// A recording as tables: frames, stacks of frames, and their weights in tasks. Views are functions over these.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Where it comes from.
    pub recording: RecordingSummary,
    /// Which samples count, and where names come from.
    pub options: Options,
    /// Frames with their symbols and images.
    pub frames: FrameTable,
    /// By [`ImageId`](crate::ImageId): the files that names were looked for in.
    pub(crate) files: Vec<Option<ImageFileState>>,
    /// The stacks of the samples that count.
    pub stacks: StackTable,
    /// Threads and processes.
    pub tasks: TaskTable,
    /// What the stacks weigh in each event, and in each counter of calling contexts.
    pub weights: WeightTable,
    /// By [`CounterId`]: the counters of the session's calling contexts; empty: it has none.
    pub contexts: Vec<ContextCounter>,
    /// The samples one by one, if [`Options::sample_table`] is set.
    pub samples: Option<SampleTable>,
    /// The events that [`Options::event`] selects, one at least.
    pub events: Vec<EventSummary>,
}

/// Where a profile comes from.
#[derive(Debug, Clone)]
pub struct RecordingSummary {
    /// The session folder.
    pub session: PathBuf,
    /// The session's manifest. Its counts are as of its last save; those of the profile are of the records.
    pub manifest: Manifest,
    /// Records that the kernel or the disk had no room for.
    pub lost: u64,
    /// When that was seen, if [`Options::sample_table`] is set; not all of [`lost`](Self::lost) has a time.
    pub losses: Vec<Loss>,
    /// From the start to the end, or to the last record of a session without one.
    pub duration: Duration,
    /// What could not be read, and why, and what else to know of the recording.
    pub notes: Vec<String>,
}

/// Records that were lost before a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// When it was seen.
    pub time: MonotonicNs,
    /// How many.
    pub count: u64,
}

/// What is known of the samples of one event as a whole.
#[derive(Debug, Clone)]
pub struct EventSummary {
    /// The event.
    pub event: EventId,
    /// Samples of the event in the recording, whether they count or not.
    pub recorded: u64,
    /// Samples that do not count, by the option that leaves them out. One that several leave out is under the first of them.
    pub excluded: BTreeMap<&'static str, u64>,
    /// Samples that count and are not attributed, by reason.
    pub unattributed: BTreeMap<&'static str, u64>,
    /// The frames in which threads were sampled, if [`Options::sampled_frames`] is set.
    pub sampled_frames: Vec<SampledFrame>,
    /// The samples of each leaf's address, by file and offset; with [`Options::sampled_addresses`] those of callers, too.
    pub addresses: Vec<SampledAddress>,
    /// Files without which samples have no names or lines, those that most samples miss first.
    pub missing: Vec<MissingFile>,
    /// What to know of the event beside [`RecordingSummary::notes`].
    pub notes: Vec<String>,
}

impl EventSummary {
    /// Samples that count and are not attributed.
    pub(crate) fn unattributed_samples(&self) -> u64 {
        let counts = self.unattributed.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl Profile {
    /// An event of the profile; none: the first that has samples, if one does. perf opens an event on each PMU of a processor, of which
    /// one may have none.
    ///
    /// # Errors
    ///
    /// The profile does not have it.
    pub fn event(&self, event: Option<EventId>) -> Result<&EventSummary> {
        let mut events = self.events.iter();
        let found = match event {
            Some(event) => events.find(|summary| summary.event == event),
            None => events
                .find(|summary| summary.recorded > 0)
                .or_else(|| self.events.first()),
        };
        found.ok_or_else(|| Error::NoEvent {
            name: event.map_or_else(String::new, |event| self.description(event).name.clone()),
            recorded: event_names(&self.recording.manifest),
        })
    }

    /// What an event is called and how often it was sampled.
    #[must_use]
    pub fn description(&self, event: EventId) -> &EventDesc {
        let events = &self.recording.manifest.events;
        events.get(event.index()).unwrap_or(&events.first)
    }

    /// The counters of the session's calling contexts.
    pub(crate) fn context_counters(&self) -> impl Iterator<Item = (CounterId, &ContextCounter)> {
        (0..).map(CounterId).zip(&self.contexts)
    }

    /// What the samples of an event that count weigh.
    #[must_use]
    pub fn weight(&self, event: EventId) -> SampleWeight {
        self.weights.sample_sum(event)
    }
}

/// The names of a recording's events.
pub(crate) fn event_names(manifest: &Manifest) -> Vec<String> {
    let events = manifest.events.iter();
    events.map(|event| event.name.clone()).collect()
}
