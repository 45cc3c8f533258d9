//! What is known of a recording as a whole?

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
};

use varid_model::FrameAddress;
use varid_recording::{
    ConfigurationChange, CpuMode, EventDesc, Manifest, Sample, SessionReader, SessionRecord,
    Tactic, remap,
};

use crate::{
    calls::{Calls, Counting},
    dim::{Collected, Dim},
    error::{Error, Result},
    missing::{self, Missing},
    options::Options,
    place::{Place, PlaceId, Symbol, SymbolId},
    resolve::Resolver,
    services::Services,
    tables::{Image, ImageId, Task, TaskId},
    tree::{CallTree, Weight},
};

/// The samples of one event of a recording as a call tree, with everything that a report says of
/// them.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The session folder.
    pub session: PathBuf,
    /// The session's manifest. Its counts are as of its last save: those below are the truth.
    pub manifest: Manifest,
    /// Whose samples these are: the place of the event among the manifest's.
    pub event: usize,
    /// Which samples count, and where names come from.
    pub options: Options,
    /// The stacks of the samples that count.
    pub tree: CallTree,
    /// By [`ImageId`].
    pub images: Vec<Image>,
    /// By [`SymbolId`].
    pub symbols: Vec<Symbol>,
    /// By [`PlaceId`].
    pub places: Vec<Place>,
    /// By [`TaskId`].
    pub tasks: Vec<Task>,
    /// By [`ServiceId`]: their names.
    pub services: Vec<String>,
    /// The frames in which threads were sampled, if they were asked for.
    pub dim: Vec<Dim>,
    /// The last known names of processes.
    pub processes: HashMap<u32, Arc<str>>,
    /// How often methods were called in the processes that count, where that was counted.
    pub calls: HashMap<SymbolId, Calls>,
    /// Samples of the event in the recording, whether they count or not.
    pub recorded: u64,
    /// Samples that count and are not attributed, by reason.
    pub unattributed: BTreeMap<&'static str, u64>,
    /// Records that the kernel or the disk had no room for.
    pub lost: u64,
    /// Nanoseconds from the start to the end, or to the last record of a session without one.
    pub duration_ns: u64,
    /// Files without which samples have no names or lines, those that most samples miss first.
    pub missing: Vec<Missing>,
    /// What else could not be read, and why.
    pub notes: Vec<String>,
}

impl Profile {
    /// Reads a session's records, which may be live, killed or complete, and makes a profile of
    /// the first event that [`Options::event`] selects.
    ///
    /// # Errors
    ///
    /// Those of [`Profile::of_every_event`].
    pub fn from_session(session: &SessionReader, options: &Options) -> Result<Self> {
        let profiles = Self::of_every_event(session, options)?;
        let first = profiles.into_iter().next();
        first.ok_or_else(|| no_event(session, options))
    }

    /// Reads a session's records, which may be live, killed or complete, and makes a profile of
    /// each event that [`Options::event`] selects; it is one at least.
    ///
    /// Where perf.data turns out damaged, the profile is of what comes before, and a note says
    /// where that is.
    ///
    /// # Errors
    ///
    /// perf.data cannot be opened, or is not one that varid writes; a folder or file of
    /// [`Options::names`] cannot be read; no event is selected.
    pub fn of_every_event(session: &SessionReader, options: &Options) -> Result<Vec<Self>> {
        let events = &session.manifest().events;
        let selected: Vec<usize> = events
            .iter()
            .enumerate()
            .filter(|(_, event)| options.selects_event(&event.name))
            .map(|(place, _)| place)
            .collect();
        if selected.is_empty() {
            return Err(no_event(session, options));
        }
        let mut builder = Builder {
            parts: vec![Part::default(); events.len()],
            resolver: Resolver::new(session, &options.names)?,
            names: HashMap::new(),
            task_ids: HashMap::new(),
            services: Services::of(&session.manifest().memberships),
            profile: Self {
                session: session.dir().to_owned(),
                manifest: session.manifest().clone(),
                event: 0,
                options: options.clone(),
                tree: CallTree::default(),
                images: Vec::new(),
                symbols: Vec::new(),
                places: Vec::new(),
                tasks: Vec::new(),
                services: Vec::new(),
                dim: Vec::new(),
                processes: HashMap::new(),
                calls: HashMap::new(),
                recorded: 0,
                unattributed: BTreeMap::new(),
                lost: 0,
                duration_ns: session.manifest().duration_ns,
                missing: Vec::new(),
                notes: Vec::new(),
            },
        };
        let mut damage = None;
        let calls = session.calls().unwrap_or_else(|error| {
            damage = Some(format!("{error}; no calls are shown"));
            Vec::new()
        });
        let mut counting = Counting::new(
            calls
                .into_iter()
                .filter(|count| options.pid.is_none_or(|pid| pid == count.pid.get()))
                .collect(),
        );
        for record in session.records()? {
            match record {
                Ok(record) => {
                    counting.until(Some(record.time()), &mut builder.resolver);
                    builder.record(&record);
                }
                Err(error) => damage = Some(format!("{error}; what follows is left out")),
            }
        }
        counting.until(None, &mut builder.resolver);
        let mut profile = builder.profile;
        profile.services = builder.services.into_names();
        let found = builder.resolver.finish();
        (profile.images, profile.symbols, profile.places) =
            (found.images, found.symbols, found.places);
        profile.calls = counting.by_symbol(&profile.places);
        let told = profile.manifest.notes.iter().cloned();
        let told = told.chain(changes(&profile.manifest));
        let slowed = profile.manifest.tactic == Tactic::MethodInvoke;
        let slowed = slowed.then(|| {
            "calls were counted while this was recorded, and that slows the VM: shares of time are distorted; \
             a recording without --mode count-calls has the usual ones"
                .to_owned()
        });
        profile.notes = told
            .chain(slowed)
            .chain(damage)
            .chain(found.notes)
            .collect();
        // A killed session's manifest may know of less than its records, and of more that
        // never got there.
        profile.lost = profile.lost.max(profile.manifest.counts.lost);
        let mut parts = builder.parts;
        let profiles = selected.into_iter().filter_map(|event| {
            let part = std::mem::take(parts.get_mut(event)?);
            let mut profile = Self {
                event,
                tree: part.tree,
                dim: part.dim.finish(|id| path(&profile.images, id)),
                recorded: part.recorded,
                unattributed: part.unattributed,
                ..profile.clone()
            };
            let lines = profile.options.names.lines;
            profile.missing = missing::missing(
                &profile.tree,
                &profile.symbols,
                &profile.places,
                &found.files,
                lines,
            );
            let selection = profile.options.describe();
            if !selection.is_empty() && profile.weight().samples == 0 && profile.recorded > 0 {
                profile.notes.push(format!(
                    "no sample matches {selection}: 'varid report --by thread' lists the processes and threads that have samples"
                ));
            }
            Some(profile)
        });
        Ok(profiles.collect())
    }

    /// The event whose samples these are.
    #[must_use]
    pub fn event(&self) -> &EventDesc {
        let events = &self.manifest.events;
        events.get(self.event).unwrap_or(&events.first)
    }

    /// What the samples that count weigh.
    #[must_use]
    pub fn weight(&self) -> Weight {
        self.tree.weight()
    }

    /// Samples that count and are not attributed.
    #[must_use]
    pub fn unattributed_samples(&self) -> u64 {
        self.unattributed
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// A symbol of this profile.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(usize::try_from(id.0).ok()?)
    }

    /// A place of this profile.
    #[must_use]
    pub fn place(&self, id: PlaceId) -> Option<&Place> {
        self.places.get(usize::try_from(id.0).ok()?)
    }

    /// The symbol of a place.
    #[must_use]
    pub fn symbol_at(&self, id: PlaceId) -> Option<&Symbol> {
        self.symbol(self.place(id)?.symbol)
    }

    /// An image of this profile.
    #[must_use]
    pub fn image(&self, id: ImageId) -> Option<&Image> {
        self.images.get(usize::try_from(id.0).ok()?)
    }

    /// A task of this profile.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(usize::try_from(id.0).ok()?)
    }
}

/// What became of the configuration while it was recorded, as sentences.
fn changes(manifest: &Manifest) -> Vec<String> {
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

fn no_event(session: &SessionReader, options: &Options) -> Error {
    let events = session.manifest().events.iter();
    Error::NoEvent {
        asked: options.event.clone().unwrap_or_default(),
        recorded: events.map(|event| event.name.clone()).collect(),
    }
}

/// What profiles of different events do not share.
#[derive(Clone, Default)]
struct Part {
    tree: CallTree,
    dim: Collected,
    recorded: u64,
    unattributed: BTreeMap<&'static str, u64>,
}

/// Profiles in the making.
struct Builder {
    /// By the place of the event.
    parts: Vec<Part>,
    resolver: Resolver,
    /// Names of threads now, by pid and tid.
    names: HashMap<(u32, u32), Arc<str>>,
    task_ids: HashMap<Task, TaskId>,
    services: Services,
    profile: Profile,
}

impl Builder {
    fn record(&mut self, record: &SessionRecord) {
        match record {
            SessionRecord::Mapping(mapping) => self.resolver.map(mapping),
            SessionRecord::Comm {
                pid,
                tid,
                exec,
                name,
                ..
            } => {
                let (pid, tid) = (pid.get(), tid.get());
                if *exec {
                    self.resolver.clear(pid);
                }
                let name: Arc<str> = name.as_str().into();
                if pid == tid {
                    self.profile.processes.insert(pid, Arc::clone(&name));
                }
                self.names.insert((pid, tid), name);
            }
            SessionRecord::Fork {
                pid,
                ppid,
                tid,
                ptid,
                ..
            } => {
                let (pid, tid) = (pid.get(), tid.get());
                let (ppid, ptid) = (ppid.get(), ptid.get());
                self.resolver.fork(ppid, pid);
                match self.names.get(&(ppid, ptid)).cloned() {
                    Some(name) => {
                        if pid == tid {
                            self.profile.processes.insert(pid, Arc::clone(&name));
                        }
                        self.names.insert((pid, tid), name);
                    }
                    None => {
                        // Another thread had it.
                        self.names.remove(&(pid, tid));
                    }
                }
            }
            // Samples of the exit itself may follow, and other threads may outlive a process's first one: names and
            // mappings stay until the id is used again.
            SessionRecord::Exit { .. } => {}
            SessionRecord::Lost { count, .. } => {
                self.profile.lost = self.profile.lost.saturating_add(*count);
            }
            SessionRecord::Sample(sample) => self.sample(sample),
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let profile = &mut self.profile;
        let Some(part) = self.parts.get_mut(sample.event) else {
            return; // the reader lets no other pass
        };
        part.recorded = part.recorded.saturating_add(1);
        let since_start = sample.time.since(profile.manifest.start_time_ns);
        let since_start = u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX);
        profile.duration_ns = profile.duration_ns.max(since_start);
        let (pid, tid) = (sample.pid.get(), sample.tid.get());
        let name = self
            .names
            .entry((pid, tid))
            .or_insert_with(|| format!(":{tid}").into());
        let event = profile.manifest.events.get(sample.event);
        if !event.is_some_and(|event| profile.options.selects_event(&event.name))
            || !profile.options.selects(pid, tid, name)
        {
            return;
        }
        let task = Task {
            pid,
            tid,
            name: Arc::clone(name),
            service: self.services.at(pid, sample.time.get()),
        };
        let next = TaskId(u32::try_from(profile.tasks.len()).unwrap_or(u32::MAX));
        let id = *self.task_ids.entry(task).or_insert_with_key(|task| {
            profile.tasks.push(task.clone());
            next
        });
        if let Some(reason) = remap::unattributed(&sample.user) {
            let count = part.unattributed.entry(reason.name()).or_default();
            *count = count.saturating_add(1);
        }
        let weight = Weight {
            samples: 1,
            period: sample.period.get(),
        };
        if profile.options.dim {
            part.dim.add(&mut self.resolver, sample, weight);
        }
        let frames = frames(&mut self.resolver, sample);
        part.tree.add(id, frames.into_iter().rev(), weight);
    }
}

/// Where an image was; what it is called, if it was nowhere.
fn path(images: &[Image], id: ImageId) -> Option<PathBuf> {
    let image = images.get(usize::try_from(id.0).ok()?)?;
    let named = || PathBuf::from(&image.name);
    Some(image.path.clone().unwrap_or_else(named))
}

/// The frames of a sample, leaf first. The first address of either part is where its code
/// was interrupted, the others are callers.
fn frames(resolver: &mut Resolver, sample: &Sample) -> Vec<PlaceId> {
    let mut frames = Vec::with_capacity(sample.kernel.len().saturating_add(sample.user.len()));
    for frame in sample.kernel_frames() {
        frames.extend_from_slice(resolver.kernel(frame));
    }
    for frame in sample.user_frames() {
        frames.extend_from_slice(resolver.user(sample.pid.get(), frame));
    }
    if frames.is_empty() {
        let leaf = FrameAddress::Instruction(sample.original_ip);
        frames.extend_from_slice(match sample.mode {
            CpuMode::Kernel => resolver.kernel(leaf),
            CpuMode::User => resolver.user(sample.pid.get(), leaf),
        });
    }
    frames
}
