//! The common input of all exports: the stacks of one event or measure, with their frames, threads and layers.

use std::{borrow::Cow, collections::BTreeMap};

use varid_model::{Layer, MonotonicNs, Pid, Rate, Tid};
use varid_recording::{EventDesc, terminal::one_line};

use super::ExportRequest;
pub(crate) use crate::plain::plain;
use crate::{
    error::{Error, Result},
    frames::{FrameId, ProfileFrame, ProfileImage, ProfileSymbol, SymbolId},
    measures::ShownMeasures,
    profile::{EventSummary, Profile},
    samples::ProfileSample,
    shares::StackWeights,
    stacks::StackId,
    tasks::Task,
    time_span::nanoseconds,
    unit::Unit,
    weights::{EventId, ProfileCounter, Weight},
};

/// The name of unknown frames.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// The samples of one event of a profile. Ids refer to the profile's tables, which contain each frame, symbol and stack
/// once.
#[derive(Debug, Clone)]
pub(crate) struct Walk<'p> {
    pub profile: &'p Profile,
    pub event: &'p EventSummary,
    pub description: &'p EventDesc,
    /// The measures of a stack's values.
    pub measures: ShownMeasures,
}

/// The sum of a thread's samples with the same stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'p> {
    pub task: &'p Task,
    /// The leaf's stack. None if no frame is known.
    pub stack: Option<StackId>,
    pub weight: Weight,
}

/// A thread with its samples in order of time.
#[derive(Debug)]
pub(crate) struct Thread<'p> {
    pub pid: Pid,
    pub tid: Tid,
    /// Its name at its last sample.
    pub name: &'p str,
    /// The name of its process at its last sample.
    pub process: &'p str,
    pub samples: Vec<ProfileSample>,
}

impl<'p> Walk<'p> {
    /// # Errors
    ///
    /// The profile does not have the event, or one of the measures of the request.
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

    /// Returns a walk for each measure.
    pub fn by_measure(&self) -> Vec<Self> {
        let walk = |measures| Self {
            measures,
            ..self.clone()
        };
        self.measures.split().into_iter().map(walk).collect()
    }

    /// Returns true if the values are of samples, each with its time.
    pub fn is_sampled(&self) -> bool {
        self.measures.are_sampled()
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

    /// The sums of samples with the same thread and stack, in order of first occurrence.
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

    /// The individual samples in order of time.
    ///
    /// # Errors
    ///
    /// The profile only has sums.
    pub fn samples(&self) -> Result<impl Iterator<Item = ProfileSample> + use<'p>> {
        let samples = self.profile.samples.as_ref().ok_or(Error::NoSampleTable)?;
        let event = self.event.event;
        Ok(samples.iter().filter(move |sample| sample.event == event))
    }

    /// The threads sorted by pid and tid, each with its samples in order of time. Takes 40 bytes for each sample.
    ///
    /// # Errors
    ///
    /// The profile only has sums.
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

    /// Returns the value of a weight in formats that have only one.
    pub fn value(&self, weight: Weight) -> u64 {
        self.measures.value(weight)
    }

    /// Returns the value of a sample in formats that have only one.
    pub fn sample_value(&self, sample: &ProfileSample) -> u64 {
        match self.unit() {
            Unit::Samples => 1,
            Unit::Nanoseconds | Unit::Bytes | Unit::Events => sample.period.get(),
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

    /// Returns the name of the unit of [`value`](Self::value), or that of a counter of calling contexts.
    pub fn unit_name(&self) -> &str {
        match self.measures.lead() {
            Some(measure) if !self.is_sampled() => &measure.unit,
            _ => Unit::of(self.description).name(),
        }
    }

    /// Returns the name of the values: the event, or the named measure.
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

    /// Returns the name of a symbol in one line, or [`UNKNOWN`].
    pub fn symbol_name(&self, id: Option<SymbolId>) -> Cow<'p, str> {
        let symbol = id.and_then(|id| self.symbol(id));
        plain(symbol.map_or(UNKNOWN, |symbol| &symbol.name))
    }

    /// Returns the layer of a symbol.
    pub fn symbol_layer(&self, id: Option<SymbolId>) -> Layer {
        let symbol = id.and_then(|id| self.symbol(id));
        symbol.map_or(Layer::Native, |symbol| symbol.layer)
    }

    pub fn image_of(&self, symbol: &ProfileSymbol) -> Option<&'p ProfileImage> {
        self.profile.frames.image(symbol.image)
    }

    /// Returns the source file of each symbol, which is that of its first line.
    pub fn files(&self) -> SourceFiles<'p> {
        let frames = &self.profile.frames;
        let mut files = vec![None; frames.symbols().len()];
        for frame in frames.frames() {
            let file = files.get_mut(frame.symbol.index());
            if let (Some(file @ None), Some(line)) = (file, &frame.line) {
                *file = Some(line.file.as_ref());
            }
        }
        SourceFiles(files)
    }

    /// Returns the layer of a stack's leaf.
    pub fn layer(&self, stack: Option<StackId>) -> Layer {
        let frame = stack.and_then(|stack| self.profile.stacks.frame(stack));
        let frame = frame.and_then(|frame| self.frame(frame));
        self.symbol_layer(frame.map(|frame| frame.symbol))
    }

    /// Returns the name of a task's process, or of the thread if the former is unknown.
    pub fn process_name(&self, task: &'p Task) -> &'p str {
        let name = self.profile.tasks.process_name(task);
        name.unwrap_or(&task.name)
    }

    /// Converts a time to nanoseconds since the start of the recording.
    pub fn since_start(&self, time: MonotonicNs) -> u64 {
        let since = time.since(self.profile.recording.manifest.start_time_ns);
        nanoseconds(since)
    }

    /// The start of the recording in seconds since 1970. 0 if the manifest does not have it.
    pub fn wall_start(&self) -> i64 {
        self.profile
            .recording
            .manifest
            .wall_start_seconds()
            .unwrap_or_default()
    }

    /// Nanoseconds between two samples on a CPU. A millisecond for events whose unit is not time.
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

    /// A title with the event or the measure, and the target of the recording.
    pub fn title(&self) -> String {
        let target = &self.profile.recording.manifest.target.value;
        one_line(&format!("{} of {target}", self.name()))
    }
}

/// Source files by [`SymbolId`].
#[derive(Debug)]
pub(crate) struct SourceFiles<'p>(Vec<Option<&'p str>>);

impl<'p> SourceFiles<'p> {
    /// Returns the file of a symbol, if known.
    pub fn of(&self, symbol: SymbolId) -> Option<&'p str> {
        *self.0.get(symbol.index())?
    }
}
