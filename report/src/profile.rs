//! A recording as tables, with its summary.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use varid_model::MonotonicNs;
use varid_recording::{ContextCounter, CounterId, EventDesc, Manifest, RecordedCode};

use crate::{
    compiled_samples::CompiledSamples,
    context_addresses::CountedAddress,
    context_weights::ContextRoot,
    error::{Error, Result},
    frames::{FrameId, FrameTable},
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

/// A recording as tables: frames, stacks of frames, and their weights in tasks. Views are computed from these.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Information about the whole recording.
    pub recording: RecordingSummary,
    /// The selection of samples and the sources of names.
    pub options: Options,
    /// Frames with their symbols and images.
    pub frames: FrameTable,
    /// By [`ImageId`](crate::ImageId): the files in which names were looked up.
    pub(crate) files: Vec<Option<ImageFileState>>,
    /// The stacks of the selected samples.
    pub stacks: StackTable,
    /// Threads and processes.
    pub tasks: TaskTable,
    /// The weights of stacks for each event and for each counter of calling contexts.
    pub weights: WeightTable,
    /// By [`CounterId`]: the counters of the session's calling contexts. Empty if it has none.
    pub contexts: Vec<ContextCounter>,
    /// The instructions with values of these counters, if [`Options::sampled_addresses`] is set.
    pub counted_addresses: Vec<CountedAddress>,
    /// The code that VMs have compiled, if [`Options::sampled_addresses`] is set and the session keeps it.
    pub(crate) compiled_code: Vec<RecordedCode>,
    /// By [`MethodId`](varid_recording::MethodId): the frames of the methods of calling contexts. None if nothing is known of an address.
    pub(crate) context_methods: Vec<Option<FrameId>>,
    /// The selected calling contexts that have no caller, by time.
    pub(crate) context_roots: Vec<ContextRoot>,
    /// The individual samples, if [`Options::sample_table`] is set.
    pub samples: Option<SampleTable>,
    /// The events that [`Options::event`] selects. There is at least one.
    pub events: Vec<EventSummary>,
}

/// Information about the recording of a profile.
#[derive(Debug, Clone)]
pub struct RecordingSummary {
    /// The session folder.
    pub session: PathBuf,
    /// The session's manifest. Its counts are those of its last save; the profile counts the records themselves.
    pub manifest: Manifest,
    /// Number of records for which the kernel or the disk had no space.
    pub lost: u64,
    /// The times at which losses were noticed, if [`Options::sample_table`] is set. Some of [`lost`](Self::lost) has no
    /// time.
    pub losses: Vec<Loss>,
    /// From the start to the end, or to the last record if the session has no end.
    pub duration: Duration,
    /// Notes on unreadable data and on the recording.
    pub notes: Vec<String>,
}

/// Records that were lost before `time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// When the loss was noticed.
    pub time: MonotonicNs,
    /// Number of lost records.
    pub count: u64,
}

/// Summary of one event.
#[derive(Debug, Clone)]
pub struct EventSummary {
    /// The event.
    pub event: EventId,
    /// Number of samples in the recording, selected or not.
    pub recorded: u64,
    /// Number of excluded samples, by option. A sample that several options exclude is listed under the first one.
    pub excluded: BTreeMap<&'static str, u64>,
    /// Number of selected samples that are not attributed, by reason.
    pub unattributed: BTreeMap<&'static str, u64>,
    /// The frames in which threads were sampled, if [`Options::sampled_frames`] is set.
    pub sampled_frames: Vec<SampledFrame>,
    /// Samples by the leaf's file and offset. With [`Options::sampled_addresses`], also those of callers.
    pub addresses: Vec<SampledAddress>,
    /// Samples by the instruction of [`Profile::compiled_code`].
    pub(crate) compiled: Vec<CompiledSamples>,
    /// Files whose absence leaves samples without names or lines, sorted by the number of samples.
    pub missing: Vec<MissingFile>,
    /// Notes on the event, in addition to [`RecordingSummary::notes`].
    pub notes: Vec<String>,
}

impl EventSummary {
    /// Number of selected samples that are not attributed.
    pub(crate) fn unattributed_samples(&self) -> u64 {
        let counts = self.unattributed.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl Profile {
    /// Returns an event of the profile. If None, it is the first event that has samples, or the first one if none has:
    /// perf opens an event on each core PMU, and there may be no samples on some.
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

    /// Returns the name and the rate of an event.
    #[must_use]
    pub fn description(&self, event: EventId) -> &EventDesc {
        let events = &self.recording.manifest.events;
        events.get(event.index()).unwrap_or(&events.first)
    }

    /// The counters of the session's calling contexts.
    pub(crate) fn context_counters(&self) -> impl Iterator<Item = (CounterId, &ContextCounter)> {
        (0..).map(CounterId).zip(&self.contexts)
    }

    /// Returns the weight of the selected samples of an event.
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
