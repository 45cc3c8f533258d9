//! How does a session become a profile?

use std::{collections::BTreeMap, path::PathBuf};

use varid_model::{Address, MonotonicNs};
use varid_recording::{
    ConfigurationChange, CpuMode, Manifest, RecordRef, Sample, SessionReader, SessionRecord, Tactic,
};

use crate::{
    call_counts::CallCounts,
    callchains::{CallchainTable, ChainStack},
    error::{Error, Result},
    frames::{FrameTable, ImageId},
    missing_files::missing_files,
    naming::Resolver,
    options::Options,
    precise,
    profile::{EventSummary, Loss, Profile, RecordingSummary, event_names},
    sampled_addresses::SampledAddresses,
    sampled_frames::SampledFrames,
    samples::{ProfileSample, SampleTable},
    shares::StackWeights,
    stack_table_builder::StackTableBuilder,
    tasks::TaskTracker,
    weights::{EventId, ProfileCounter, Weight, WeightTableBuilder},
};

impl Profile {
    /// Reads a session's records, which may be live, killed or complete, and makes a profile of
    /// the events that [`Options::event`] selects.
    ///
    /// Where perf.data turns out damaged, the profile is of what comes before, and a note says
    /// where that is.
    ///
    /// # Errors
    ///
    /// perf.data cannot be opened, or is not one that varid writes; a folder or file of
    /// [`Options::names`] cannot be read; no event is selected.
    pub fn from_session(session: &SessionReader, options: &Options) -> Result<Self> {
        let mut builder = Builder::new(session, options)?;
        let mut damage = None;
        let contexts = session.contexts().unwrap_or_else(|error| {
            damage = Some(format!("{error}; no calls are shown"));
            None
        });
        let contexts = contexts.unwrap_or_default();
        if let Some(found) = contexts.damage() {
            damage = Some(format!("{found}; what follows is left out"));
        }
        let mut calls = CallCounts::new(&contexts, options.pid);
        let mut records = session.records()?;
        while let Some(record) = records.next_ref() {
            match record {
                Ok(record) => {
                    builder.calls(&mut calls, Some(record.time()));
                    match record {
                        RecordRef::Sample(sample) => builder.sample(&sample),
                        RecordRef::Other(record) => builder.record(record),
                    }
                }
                Err(error) => damage = Some(format!("{error}; what follows is left out")),
            }
        }
        builder.calls(&mut calls, None);
        Ok(builder.finish(damage))
    }
}

/// The records so far as tables.
struct Builder {
    options: Options,
    resolver: Resolver,
    tasks: TaskTracker,
    stacks: StackTableBuilder,
    weights: WeightTableBuilder,
    samples: Option<SampleTable>,
    /// By the place of the event in the manifest; none: it is not selected.
    events: Vec<Option<EventSamples>>,
    recording: RecordingSummary,
    callchains: CallchainTable,
}

/// What is collected of an event.
#[derive(Default)]
struct EventSamples {
    recorded: u64,
    excluded: BTreeMap<&'static str, u64>,
    unattributed: BTreeMap<&'static str, u64>,
    sampled_frames: SampledFrames,
    addresses: SampledAddresses,
}

impl Builder {
    fn new(session: &SessionReader, options: &Options) -> Result<Self> {
        let manifest = session.manifest();
        let events = manifest.events.iter().map(|event| {
            let is_selected = options.selects_event(&event.name);
            is_selected.then(EventSamples::default)
        });
        let events: Vec<_> = events.collect();
        if events.iter().all(Option::is_none) {
            return Err(Error::NoEvent {
                name: options.event.clone().unwrap_or_default(),
                recorded: event_names(manifest),
            });
        }
        Ok(Self {
            options: options.clone(),
            resolver: Resolver::new(session, &options.names)?,
            tasks: TaskTracker::new(&manifest.memberships),
            stacks: StackTableBuilder::default(),
            weights: WeightTableBuilder::default(),
            samples: options.sample_table.then(SampleTable::default),
            events,
            recording: RecordingSummary {
                session: session.dir().to_owned(),
                manifest: manifest.clone(),
                lost: 0,
                losses: Vec::new(),
                duration: std::time::Duration::from_nanos(manifest.duration_ns),
                notes: Vec::new(),
            },
            callchains: CallchainTable::new(options.stacks.clone()),
        })
    }

    /// Adds the counts of calls from before a time.
    fn calls(&mut self, calls: &mut CallCounts, until: Option<MonotonicNs>) {
        let tables = (&mut self.stacks, &mut self.weights);
        calls.add_until(until, &mut self.resolver, tables);
    }

    fn record(&mut self, record: &SessionRecord) {
        match record {
            SessionRecord::Lost { time, count } => {
                self.recording.lost = self.recording.lost.saturating_add(*count);
                if self.samples.is_some() {
                    let (time, count) = (*time, *count);
                    self.recording.losses.push(Loss { time, count });
                }
            }
            SessionRecord::Sample(sample) => self.sample(&sample.borrowed()),
            _ => {
                self.tasks.follow(record);
                self.resolver.follow(record);
            }
        }
    }

    fn sample(&mut self, sample: &Sample<&[Address]>) {
        let precise = precise::chain_of(&mut self.resolver, sample);
        let mut sample = *sample;
        match (&precise, sample.mode) {
            (Some(chain), CpuMode::Kernel) => sample.kernel = chain,
            (Some(chain), CpuMode::User) => sample.user = chain,
            (None, _) => {}
        }
        self.placed_sample(&sample);
    }

    /// Adds a sample whose leaf stands in its own function.
    fn placed_sample(&mut self, sample: &Sample<&[Address]>) {
        let recording = &mut self.recording;
        let time = sample.time;
        let start = recording.manifest.start_time_ns;
        let since_start = time.since(start);
        recording.duration = recording.duration.max(since_start);
        let thread = (sample.pid, sample.tid);
        // A thread without a name is called by its number from its first sample on; threads that it makes inherit that.
        self.tasks.name(thread);
        let Some(Some(event)) = self.events.get_mut(sample.event) else {
            return;
        };
        event.recorded = event.recorded.saturating_add(1);
        let excluded = self
            .options
            .excluded_by(since_start, thread, &mut self.tasks);
        let stack = match excluded {
            Some(option) => Err(option),
            None => {
                let tables = (&mut self.resolver, &mut self.stacks);
                match self.callchains.stack_of(tables, sample) {
                    ChainStack::Excluded(option) => Err(option.name()),
                    ChainStack::Counted { stack, reason } => Ok((stack, reason)),
                }
            }
        };
        let (stack, reason) = match stack {
            Ok(counted) => counted,
            Err(option) => {
                let count = event.excluded.entry(option).or_default();
                *count = count.saturating_add(1);
                return;
            }
        };
        let task = self.tasks.task(thread, time);
        if let Some(reason) = reason {
            let count = event.unattributed.entry(reason.name()).or_default();
            *count = count.saturating_add(1);
        }
        if self.options.sampled_frames {
            let weight = Weight([1, sample.period.get()]);
            event.sampled_frames.add(&mut self.resolver, sample, weight);
        }
        let weight = Weight([1, sample.period.get()]);
        match self.options.sampled_addresses {
            true => event.addresses.add(&self.resolver, sample, weight),
            false => event.addresses.add_leaf(&self.resolver, sample, weight),
        }
        let event = EventId(u32::try_from(sample.event).unwrap_or(u32::MAX));
        let period = sample.period;
        self.weights.add_sample(task, stack, (event, period));
        if let Some(samples) = &mut self.samples {
            samples.push(ProfileSample {
                time,
                task,
                stack,
                event,
                period,
            });
        }
    }

    fn finish(self, damage: Option<String>) -> Profile {
        let Self {
            options,
            resolver,
            tasks,
            stacks,
            weights,
            mut samples,
            events,
            mut recording,
            ..
        } = self;
        if let Some(samples) = &mut samples {
            samples.shrink_to_fit();
        }
        let names = resolver.finish();
        let (stacks, weights) = (stacks.finish(), weights.finish());
        let manifest = &recording.manifest;
        let slowed = manifest.tactic == Tactic::MethodInvoke;
        let slowed = slowed.then(|| {
            "calls were counted while this was recorded, and that slows the VM: shares of time are distorted; \
             a recording without --mode count-calls has the usual ones"
                .to_owned()
        });
        recording.notes = (manifest.notes.iter().cloned())
            .chain(configuration_changes(manifest))
            .chain(slowed)
            .chain(damage)
            .chain(names.notes)
            .collect();
        // A killed session's manifest may know of less than its records, and of more that
        // never got there.
        recording.lost = recording.lost.max(manifest.counts.lost);
        let summary = |(place, event): (usize, Option<EventSamples>)| {
            let event_id = EventId(u32::try_from(place).unwrap_or(u32::MAX));
            let EventSamples {
                recorded,
                excluded,
                unattributed,
                sampled_frames,
                addresses,
            } = event?;
            let counters = ProfileCounter::of_samples(event_id);
            let all = weights.sum(counters);
            let selection = options.describe();
            let empty = !selection.is_empty() && all.samples() == 0 && recorded > 0;
            let empty = empty.then(|| {
                let lasts = options.time.map(|_| {
                    let seconds = recording.duration.as_secs_f64();
                    format!("the recording lasts {seconds:.3} s, and ")
                });
                let lasts = lasts.unwrap_or_default();
                format!(
                    "no sample matches {selection}: {lasts}'varid report --by thread' lists the processes and threads that have samples"
                )
            });
            let stack_weights = StackWeights::new(&stacks, &weights, counters);
            Some(EventSummary {
                event: event_id,
                recorded,
                excluded,
                unattributed,
                sampled_frames: sampled_frames.finish(|id| path_of(&names.frames, id)),
                addresses: addresses.finish(),
                missing: missing_files(
                    &stack_weights,
                    all,
                    &names.frames,
                    &names.files,
                    options.names.lines,
                ),
                notes: empty.into_iter().collect(),
            })
        };
        let events = events.into_iter().enumerate().filter_map(summary);
        Profile {
            events: events.collect(),
            recording,
            frames: names.frames,
            files: names.files,
            stacks,
            tasks: tasks.finish(),
            weights,
            samples,
            options,
        }
    }
}

/// Where an image was, or its name if it has no path.
fn path_of(frames: &FrameTable, id: ImageId) -> Option<PathBuf> {
    let image = frames.image(id)?;
    let named = || PathBuf::from(&image.name);
    Some(image.path.clone().unwrap_or_else(named))
}

/// How the configuration changed during the recording, as sentences.
fn configuration_changes(manifest: &Manifest) -> Vec<String> {
    let sentence = |change: &ConfigurationChange| {
        let at = change.time_ns.since(manifest.start_time_ns).as_millis();
        let at = format!("{}.{:03} s", at / 1000, at % 1000);
        let mut parts = Vec::new();
        if let Some(error) = &change.error {
            parts.push(format!("was wrong and changed nothing: {error}"));
        }
        if !change.changed.is_empty() {
            parts.push(format!("changed {}", change.changed.join(", ")));
        }
        if !change.waiting.is_empty() {
            let keys = change.waiting.join(", ");
            parts.push(format!("has another {keys} for the next session"));
        }
        format!(
            "{at} after the start the configuration {}",
            parts.join("; ")
        )
    };
    manifest.changes.iter().map(sentence).collect()
}
