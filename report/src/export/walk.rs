//! What all exports write: the stacks of one event or measure, with their frames, threads and layers.

use std::{borrow::Cow, collections::BTreeMap};

use varid_model::{Layer, MonotonicNs, Pid, Rate, Tid};
use varid_recording::{EventDesc, terminal::one_line};

use super::ExportRequest;
use crate::{
    error::{Error, Result},
    frames::{FrameId, ProfileFrame, ProfileImage, ProfileSymbol, SymbolId},
    measures::ShownMeasures,
    profile::{EventSummary, Profile},
    samples::ProfileSample,
    shares::StackWeights,
    stacks::StackId,
    tasks::Task,
    unit::Unit,
    weights::{EventId, ProfileCounter, Weight},
};

/// What stands for frames that are not known.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// The samples of one event of a profile. Ids are those of the profile's tables, which hold each frame, symbol and stack once.
#[derive(Debug)]
pub(crate) struct Walk<'p> {
    pub profile: &'p Profile,
    pub event: &'p EventSummary,
    pub description: &'p EventDesc,
    /// What a stack's values are of.
    pub measures: ShownMeasures,
}

/// The samples of a thread that have the same stack, together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'p> {
    pub task: &'p Task,
    /// The leaf; none: no frame is known.
    pub stack: Option<StackId>,
    pub weight: Weight,
}

/// A thread with its samples by time.
#[derive(Debug)]
pub(crate) struct Thread<'p> {
    pub pid: Pid,
    pub tid: Tid,
    /// The last name that it had when it was sampled.
    pub name: &'p str,
    /// The name of its process, as what it executed last.
    pub process: &'p str,
    pub samples: Vec<ProfileSample>,
}

impl<'p> Walk<'p> {
    /// # Errors
    ///
    /// The profile does not have the event, or not the measures that the request names.
    pub fn new(
        profile: &'p Profile,
        event: Option<EventId>,
        request: &ExportRequest,
    ) -> Result<Self> {
        let event = profile.event(event)?;
        let measures = ShownMeasures::of(profile, event, &request.measures, request.weigh)?;
        Ok(Self {
            profile,
            event,
            description: profile.description(event.event),
            measures,
        })
    }

    /// The weights of all stacks.
    pub fn weights(&self) -> StackWeights<'p> {
        let (stacks, weights) = (&self.profile.stacks, &self.profile.weights);
        StackWeights::new(stacks, weights, &self.measures.counters())
    }

    /// The sum of the weights.
    pub fn all(&self) -> Weight {
        self.profile.weights.sum(&self.measures.counters())
    }

    /// The sums of samples with the same thread and stack, in the order in which they were first seen.
    pub fn rows(&self) -> impl Iterator<Item = Row<'p>> {
        let profile = self.profile;
        let rows = profile.weights.rows(&self.measures.counters());
        rows.filter_map(|row| {
            Some(Row {
                task: profile.tasks.task(row.task)?,
                stack: row.stack,
                weight: row.weight,
            })
        })
    }

    /// The samples one by one, by time.
    ///
    /// # Errors
    ///
    /// The profile has sums only.
    pub fn samples(&self) -> Result<impl Iterator<Item = ProfileSample> + use<'p>> {
        let samples = self.profile.samples.as_ref().ok_or(Error::NoSampleTable)?;
        let event = self.event.event;
        Ok(samples.iter().filter(move |sample| sample.event == event))
    }

    /// The threads by process and id, each with its samples by time. Takes 40 bytes a sample.
    ///
    /// # Errors
    ///
    /// The profile has sums only.
    pub fn threads(&self) -> Result<Vec<Thread<'p>>> {
        let mut threads: BTreeMap<(Pid, Tid), Thread> = BTreeMap::new();
        for sample in self.samples()? {
            let Some(task) = self.profile.tasks.task(sample.task) else {
                continue;
            };
            let thread = threads
                .entry((task.pid, task.tid))
                .or_insert_with(|| Thread {
                    pid: task.pid,
                    tid: task.tid,
                    name: "",
                    process: "",
                    samples: Vec::new(),
                });
            thread.name = &task.name;
            thread.process = self.process_name(task);
            thread.samples.push(sample);
        }
        Ok(threads.into_values().collect())
    }

    /// The number that a weight is in formats that have one.
    pub fn value(&self, weight: Weight) -> u64 {
        self.measures.value(weight)
    }

    /// The same of a sample.
    pub fn sample_value(&self, sample: &ProfileSample) -> u64 {
        match self.unit() {
            Unit::Samples => 1,
            Unit::Nanoseconds | Unit::Events => sample.period.get(),
        }
    }

    /// The unit of [`value`](Self::value).
    pub fn unit(&self) -> Unit {
        match self.measures.lead().map(|measure| measure.counter) {
            Some(ProfileCounter::Samples(_)) => Unit::Samples,
            Some(ProfileCounter::Period(_)) => Unit::of(self.description),
            Some(ProfileCounter::Context(_)) | None => Unit::Events,
        }
    }

    /// What the values are called: by the event, or by the measure that is named.
    pub fn name(&self) -> &str {
        match self.measures.lead() {
            Some(measure) if !self.measures.are_samples() => &measure.name,
            _ => &self.description.name,
        }
    }

    /// The frames of a stack, leaf first.
    pub fn frames(&self, stack: Option<StackId>) -> impl Iterator<Item = FrameId> {
        let stacks = &self.profile.stacks;
        stack
            .into_iter()
            .flat_map(move |stack| stacks.frames_of(stack))
    }

    pub fn frame(&self, id: FrameId) -> Option<&'p ProfileFrame> {
        self.profile.frames.frame(id)
    }

    pub fn symbol(&self, id: SymbolId) -> Option<&'p ProfileSymbol> {
        self.profile.frames.symbol(id)
    }

    pub fn symbol_of(&self, id: FrameId) -> Option<&'p ProfileSymbol> {
        self.profile.frames.symbol_of(id)
    }

    /// The name of a symbol in one line; of none [`UNKNOWN`].
    pub fn symbol_name(&self, id: Option<SymbolId>) -> Cow<'p, str> {
        let symbol = id.and_then(|id| self.symbol(id));
        plain(symbol.map_or(UNKNOWN, |symbol| &symbol.name))
    }

    /// What a symbol counts for.
    pub fn symbol_layer(&self, id: Option<SymbolId>) -> Layer {
        let symbol = id.and_then(|id| self.symbol(id));
        symbol.map_or(Layer::Native, |symbol| symbol.layer)
    }

    pub fn image_of(&self, symbol: &ProfileSymbol) -> Option<&'p ProfileImage> {
        self.profile.frames.image(symbol.image)
    }

    /// The source file of each symbol: that of its first line; none if no line is known.
    pub fn files(&self) -> SourceFiles<'p> {
        let frames = &self.profile.frames;
        let mut files = vec![None; frames.symbols().len()];
        for frame in frames.frames() {
            let place = usize::try_from(frame.symbol.0).ok();
            let file = place.and_then(|place| files.get_mut(place));
            if let (Some(file @ None), Some(line)) = (file, &frame.line) {
                *file = Some(line.file.as_ref());
            }
        }
        SourceFiles(files)
    }

    /// What a stack's leaf counts for.
    pub fn layer(&self, stack: Option<StackId>) -> Layer {
        let frame = stack.and_then(|stack| self.profile.stacks.frame(stack));
        let frame = frame.and_then(|frame| self.frame(frame));
        self.symbol_layer(frame.map(|frame| frame.symbol))
    }

    /// The name of a task's process; that of the thread if its own is not known.
    pub fn process_name(&self, task: &'p Task) -> &'p str {
        let name = self.profile.tasks.process_name(task);
        name.unwrap_or(&task.name)
    }

    /// A time as nanoseconds since the recording's start.
    pub fn since_start(&self, time: MonotonicNs) -> u64 {
        let since = time.since(self.profile.recording.manifest.start_time_ns);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The recording's start as seconds since 1970; 0 if the manifest does not say.
    pub fn wall_start(&self) -> i64 {
        self.profile
            .recording
            .manifest
            .wall_start_seconds()
            .unwrap_or_default()
    }

    /// Nanoseconds between two samples of a processor; for events that are not of time a millisecond.
    pub fn interval(&self) -> u64 {
        match (self.description.rate, Unit::of(self.description)) {
            (Rate::Frequency(frequency), _) => {
                let interval = 1_000_000_000_u64.checked_div(frequency);
                interval.unwrap_or(1_000_000)
            }
            (Rate::Period(period), Unit::Nanoseconds) => period,
            (Rate::Period(_), _) => 1_000_000,
        }
    }

    /// The event or the measure, and what was recorded, as a title.
    pub fn title(&self) -> String {
        let target = &self.profile.recording.manifest.target.value;
        one_line(&format!("{} of {target}", self.name()))
    }
}

/// By [`SymbolId`]: source files.
#[derive(Debug)]
pub(crate) struct SourceFiles<'p>(Vec<Option<&'p str>>);

impl<'p> SourceFiles<'p> {
    /// That of a symbol, if it is known.
    pub fn of(&self, symbol: SymbolId) -> Option<&'p str> {
        let place = usize::try_from(symbol.0).ok()?;
        *self.0.get(place)?
    }
}

/// A name in one line, without what a terminal or a viewer would take for a command.
pub(crate) fn plain(name: &str) -> Cow<'_, str> {
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_control());
    if is_plain {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(one_line(name))
    }
}
