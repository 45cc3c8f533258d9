//! Reads a session into a profile.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use varid_model::{Address, MonotonicNs, Reason};
use varid_recording::{
    ConfigurationChange, CpuMode, Manifest, RecordRef, Sample, SessionReader, SessionRecord, Tactic,
};

use crate::{
    callchains::{CallchainTable, ChainStack},
    compiled_samples::{CompiledCounts, SessionCode},
    context_weights::{ContextTarget, ContextWeights, ReadContexts},
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
    stacks::StackId,
    tasks::{TaskTracker, ThreadKey},
    weights::{EventId, ProfileCounter, SampleWeight, WeightTableBuilder},
};

impl Profile {
    /// Reads a session's records, which may be live, killed or complete, and makes a profile of the events that
    /// [`Options::event`] selects.
    ///
    /// If perf.data is damaged, the profile has the records before the damage, and a note gives the offset. A session of
    /// calling contexts may have no perf.data: its profile has no samples and no names.
    ///
    /// # Errors
    ///
    /// perf.data cannot be opened or was not written by varid; a folder or file of [`Options::names`] cannot be read;
    /// no event is selected.
    pub fn from_session(session: &SessionReader, options: &Options) -> Result<Self> {
        let mut builder = Builder::new(session, options)?;
        let mut damage = None;
        let mut contexts = match session.contexts() {
            Ok(contexts) => contexts.map(|read| ContextWeights::new(read, options)),
            Err(error) => {
                damage = Some(format!("{error}; what was counted exactly is not shown"));
                None
            }
        };
        if contexts.is_some() && !session.has_records() {
            damage = Some(NO_RECORDS.to_owned());
        } else {
            let mut records = session.records()?;
            if options.sampled_addresses {
                let of_code = builder.open_code(session);
                damage = damage.or(of_code);
            }
            while let Some(record) = records.next_ref() {
                match record {
                    Ok(record) => builder.read(record, contexts.as_mut()),
                    Err(error) => damage = Some(format!("{error}; what follows is left out")),
                }
            }
        }
        builder.contexts(contexts.as_mut(), None);
        let contexts = contexts.map(ContextWeights::finish).unwrap_or_default();
        Ok(builder.finish(damage, contexts))
    }
}

/// Note for a session of calling contexts without perf.data.
const NO_RECORDS: &str =
    "there is no perf.data, which has the samples and says what is mapped: methods have no names";

/// Builds the tables from records.
struct Builder {
    options: Options,
    resolver: Resolver,
    tasks: TaskTracker,
    stacks: StackTableBuilder,
    weights: WeightTableBuilder,
    samples: Option<SampleTable>,
    /// By index of the event in the manifest. None if the event is not selected.
    events: Vec<Option<EventSamples>>,
    recording: RecordingSummary,
    callchains: CallchainTable,
    /// Compiled code. None if the session has none, or it is not wanted.
    code: Option<SessionCode>,
}

/// Data collected for one event.
#[derive(Default)]
struct EventSamples {
    recorded: u64,
    excluded: BTreeMap<&'static str, u64>,
    unattributed: BTreeMap<&'static str, u64>,
    sampled_frames: SampledFrames,
    addresses: SampledAddresses,
    compiled: CompiledCounts,
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
                duration: Duration::from_nanos(manifest.duration_ns),
                notes: Vec::new(),
            },
            callchains: CallchainTable::new(options.stacks.clone()),
            code: None,
        })
    }

    /// Opens the session's compiled code. Returns a note if not all of it can be read.
    fn open_code(&mut self, session: &SessionReader) -> Option<String> {
        let opened = session.compiled_code();
        let damage = match &opened {
            Ok(codes) => codes.as_ref()?.damage(),
            Err(error) => Some(error),
        };
        let note = damage.map(|damage| format!("{damage}; compiled code behind that is not shown"));
        self.code = opened.ok().flatten().map(SessionCode::new);
        note
    }

    /// Adds the calling contexts before a time, or all remaining ones if None.
    fn contexts(&mut self, contexts: Option<&mut ContextWeights>, until: Option<MonotonicNs>) {
        if let Some(contexts) = contexts {
            let target = ContextTarget {
                resolver: &mut self.resolver,
                tasks: &mut self.tasks,
                stacks: &mut self.stacks,
                weights: &mut self.weights,
            };
            contexts.add_until(until, target);
        }
    }

    /// Adds a record, after the calling contexts before it.
    fn read(&mut self, record: RecordRef<'_>, contexts: Option<&mut ContextWeights>) {
        self.contexts(contexts, Some(record.time()));
        match record {
            RecordRef::Sample(sample) => self.sample(&sample),
            RecordRef::Other(record) => self.record(record),
        }
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
        let Some(precise) = precise::chain_of(&mut self.resolver, sample) else {
            return self.placed_sample(sample);
        };
        let mut sample = *sample;
        match sample.mode {
            CpuMode::Kernel => sample.kernel = &precise,
            CpuMode::User => sample.user = &precise,
        }
        self.placed_sample(&sample);
    }

    /// Adds a sample whose leaf is in the correct function.
    fn placed_sample(&mut self, sample: &Sample<&[Address]>) {
        let recording = &mut self.recording;
        let time = sample.time;
        let start = recording.manifest.start_time_ns;
        let since_start = time.since(start);
        recording.duration = recording.duration.max(since_start);
        let thread = ThreadKey {
            pid: sample.pid,
            tid: sample.tid,
        };
        // A thread without a name is named after its tid from its first sample on, and its child threads inherit that name.
        self.tasks.name(thread);
        if !matches!(self.events.get(sample.event), Some(Some(_))) {
            return;
        }
        let selected = self.select(sample, thread, since_start);
        let Some(Some(event)) = self.events.get_mut(sample.event) else {
            return;
        };
        event.recorded = event.recorded.saturating_add(1);
        let (stack, reason) = match selected {
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
        let weight = SampleWeight::new(1, sample.period.get());
        if self.options.sampled_frames {
            event.sampled_frames.add(&mut self.resolver, sample, weight);
        }
        match self.options.sampled_addresses {
            true => event.addresses.add(&self.resolver, sample, weight),
            false => event.addresses.add_leaf(&self.resolver, sample, weight),
        }
        if let Some(code) = &mut self.code {
            event.compiled.add(&self.resolver, code, sample, weight);
        }
        let event = EventId::at(sample.event);
        let period = sample.period;
        self.weights.add_sample(task, stack, event, period);
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

    /// Returns the stack of a sample, and the reason if its frames are not attributed. The error is the option that
    /// excludes it.
    fn select(
        &mut self,
        sample: &Sample<&[Address]>,
        thread: ThreadKey,
        since_start: Duration,
    ) -> std::result::Result<(Option<StackId>, Option<Reason>), &'static str> {
        let tasks = &mut self.tasks;
        if let Some(option) = self.options.excluded_by(since_start, thread, tasks) {
            return Err(option);
        }
        let (resolver, stacks) = (&mut self.resolver, &mut self.stacks);
        match self.callchains.stack_of(resolver, stacks, sample) {
            ChainStack::Excluded(option) => Err(option.name()),
            ChainStack::Counted { stack, reason } => Ok((stack, reason)),
        }
    }

    fn finish(self, damage: Option<String>, contexts: ReadContexts) -> Profile {
        let Self {
            options,
            resolver,
            tasks,
            stacks,
            weights,
            mut samples,
            events,
            mut recording,
            code,
            ..
        } = self;
        if let Some(samples) = &mut samples {
            samples.shrink_to_fit();
        }
        let names = resolver.finish();
        let (stacks, weights) = (stacks.finish(), weights.finish());
        let manifest = &recording.manifest;
        recording.notes = notes(manifest)
            .chain(damage)
            .chain(contexts.notes)
            .chain(names.notes)
            .collect();
        // The manifest of a killed session may count fewer records than there are, or records that were never written.
        recording.lost = recording.lost.max(manifest.counts.lost);
        let ids = (0..).map(EventId);
        let read = ids.zip(events).filter_map(|(id, read)| Some((id, read?)));
        let summary = |(event, read): (EventId, EventSamples)| {
            let all = weights.sample_sum(event);
            let empty = read.is_empty(&options, all);
            let empty = empty.then(|| no_sample_matches(&options, recording.duration));
            let counters = ProfileCounter::of_samples(event);
            let weights = StackWeights::new(&stacks, &weights, &counters);
            let frames = &names.frames;
            EventSummary {
                event,
                recorded: read.recorded,
                excluded: read.excluded,
                unattributed: read.unattributed,
                sampled_frames: read.sampled_frames.finish(|id| path_of(frames, id)),
                addresses: read.addresses.finish(),
                compiled: read.compiled.finish(),
                missing: missing_files(&weights, all, frames, &names.files, options.names.lines),
                notes: empty.into_iter().collect(),
            }
        };
        Profile {
            events: read.map(summary).collect(),
            recording,
            frames: names.frames,
            files: names.files,
            stacks,
            tasks: tasks.finish(),
            weights,
            contexts: contexts.counters,
            counted_addresses: contexts.addresses,
            context_methods: contexts.methods,
            compiled_code: code.map_or_else(Vec::new, SessionCode::into_codes),
            context_roots: contexts.roots,
            samples,
            options,
        }
    }
}

impl EventSamples {
    /// Returns true if the options exclude all samples of the recording.
    fn is_empty(&self, options: &Options, counted: SampleWeight) -> bool {
        let selects = !options.describe().is_empty();
        selects && counted.samples() == 0 && self.recorded > 0
    }
}

/// Makes the note that no sample matches the options.
fn no_sample_matches(options: &Options, duration: Duration) -> String {
    let lasts = options.time.map(|_| {
        let seconds = duration.as_secs_f64();
        format!("the recording lasts {seconds:.3} s, and ")
    });
    format!(
        "no sample matches {}: {}'varid report --by thread' lists the processes and threads that have samples",
        options.describe(),
        lasts.unwrap_or_default()
    )
}

/// Returns the notes of the recorder, and those on how it recorded.
fn notes(manifest: &Manifest) -> impl Iterator<Item = String> {
    let notes = manifest.notes.iter().cloned();
    let notes = notes.chain(configuration_changes(manifest));
    notes.chain(slowed(manifest))
}

/// Makes the note that counting calls slowed down the recorded program.
fn slowed(manifest: &Manifest) -> Option<String> {
    let slowed = manifest.tactic == Tactic::MethodInvoke;
    slowed.then(|| {
        "calls were counted while this was recorded, and that slows the VM: shares of time are distorted; \
         a recording without --mode count-calls has the usual ones"
            .to_owned()
    })
}

/// The path of an image, or its name if it has none.
fn path_of(frames: &FrameTable, id: ImageId) -> Option<PathBuf> {
    let image = frames.image(id)?;
    let named = || PathBuf::from(&image.name);
    Some(image.path.clone().unwrap_or_else(named))
}

/// Describes the configuration changes during the recording, as sentences.
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
