//! Profiles a session while it is being recorded.
//!
//! [`tally`]: the recent and the whole amount of a row; [`tables`]: the rows; [`symbol_names`]: the symbols of a row.

mod symbol_names;
mod tables;
mod tally;

use std::{collections::HashMap, path::PathBuf, time::Duration};

use varid_model::{Layer, MonotonicNs, Pid, Tid};
use varid_recording::{Records, SessionReader, SessionRecord};

use crate::{
    callchains::SampleFrames,
    error::Result,
    frames::{SourceLine, SymbolId},
    name_options::NameOptions,
    naming::Resolver,
    tasks::{TaskTracker, ThreadKey},
};
use symbol_names::SymbolNames;
use tables::{EventTables, LiveFrame};
pub use tally::{Amount, HALF_LIFE, LiveShare, LiveSpan};

/// A session that may still be recorded, summed up by method, line, call and thread. It has no tables of samples or
/// stacks, so its memory only grows with the number of distinct rows.
#[derive(Debug)]
pub struct LiveProfile {
    session: SessionReader,
    records: Records,
    resolver: Resolver,
    names: SymbolNames,
    tasks: TaskTracker,
    /// By index of the event in the manifest.
    events: Vec<EventTables>,
    progress: Progress,
    /// The frames of the current sample.
    frames: SampleFrames,
    stack: Vec<LiveFrame>,
}

/// The progress of reading a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of samples of all events.
    pub samples: u64,
    /// Number of lost samples.
    pub lost: u64,
    /// Time from the start to the latest record.
    pub elapsed: Duration,
    /// The position of damage in the records.
    pub damage: Option<String>,
}

/// A method or function that was sampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveMethod<'p> {
    /// Its name.
    pub name: &'p str,
    /// Whether it stands for the inlined copies of the function in its callers.
    pub inlined: bool,
    /// The name of its image.
    pub image: &'p str,
    /// Its layer.
    pub layer: Layer,
    /// The samples of the method.
    pub share: LiveShare,
}

/// A thread that was sampled, under one of its names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveThread<'p> {
    /// Its process.
    pub pid: Pid,
    /// The name of the process at the last sample of the thread under this name.
    pub process: Option<&'p str>,
    /// The thread.
    pub tid: Tid,
    /// Its name.
    pub name: &'p str,
    /// The samples of the thread.
    pub share: LiveShare,
}

impl LiveProfile {
    /// Opens a session without reading its records.
    ///
    /// # Errors
    ///
    /// It is not a session, or a folder or file of `names` cannot be read.
    pub fn open(dir: impl Into<PathBuf>, names: &NameOptions) -> Result<Self> {
        let session = SessionReader::open(dir)?;
        let manifest = session.manifest();
        let count = manifest.events.len();
        Ok(Self {
            records: session.records()?.following(),
            resolver: Resolver::new(&session, names)?,
            names: SymbolNames::default(),
            tasks: TaskTracker::new(&manifest.memberships),
            events: (0..count).map(|_| EventTables::default()).collect(),
            progress: Progress::default(),
            frames: SampleFrames::default(),
            stack: Vec::new(),
            session,
        })
    }

    /// The session, with its manifest at the last [`refresh`](Self::refresh).
    #[must_use]
    pub const fn session(&self) -> &SessionReader {
        &self.session
    }

    /// The progress of reading.
    #[must_use]
    pub const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Checks for data that has been added to the session, for [`read`](Self::read). `ended` means that no more will be
    /// added.
    ///
    /// # Errors
    ///
    /// The session cannot be read any more.
    pub fn refresh(&mut self, ended: bool) -> Result<()> {
        if ended {
            self.records.end();
        }
        // Must precede the manifest, which lists the images of these records.
        self.records.grow()?;
        self.session = SessionReader::open(self.session.dir())?;
        self.resolver.refresh(self.session.manifest());
        Ok(())
    }

    /// Reads at most `most` of the records that the last [`refresh`](Self::refresh) found. Returns true if there are more.
    pub fn read(&mut self, most: usize) -> bool {
        for _ in 0..most {
            match self.records.next() {
                None => return false,
                Some(Ok(record)) => self.record(&record),
                Some(Err(error)) => self.progress.damage = Some(error.to_string()),
            }
        }
        true
    }

    /// The time of the latest sample of an event.
    #[must_use]
    pub fn latest(&self, event: usize) -> MonotonicNs {
        let event = self.events.get(event);
        event.map_or(MonotonicNs::ZERO, EventTables::latest)
    }

    /// Returns all samples of an event, weighed for a time.
    #[must_use]
    pub fn all(&self, event: usize, span: LiveSpan, now: MonotonicNs) -> LiveShare {
        let event = self.events.get(event);
        event.map_or_else(LiveShare::default, |event| event.all(span, now))
    }

    /// The methods and functions that were sampled.
    pub fn methods(
        &self,
        event: usize,
        span: LiveSpan,
        now: MonotonicNs,
    ) -> impl Iterator<Item = LiveMethod<'_>> {
        let event = self.events.get(event).into_iter();
        event
            .flat_map(move |event| event.symbols(span, now))
            .filter_map(|(id, share)| self.method(id, share))
    }

    /// The threads that were sampled.
    pub fn threads(
        &self,
        event: usize,
        span: LiveSpan,
        now: MonotonicNs,
    ) -> impl Iterator<Item = LiveThread<'_>> {
        let event = self.events.get(event).into_iter();
        let thread = |(id, share)| {
            let table = self.tasks.table();
            let task = table.task(id)?;
            Some(LiveThread {
                pid: task.pid,
                process: table.process_name(task),
                tid: task.tid,
                name: &task.name,
                share,
            })
        };
        event
            .flat_map(move |event| event.tasks(span, now))
            .filter_map(thread)
    }

    /// The lines of the methods that `is_it` selects. None stands for instructions without a line.
    pub fn lines(
        &self,
        event: usize,
        span: LiveSpan,
        now: MonotonicNs,
        is_it: impl Fn(&LiveMethod<'_>) -> bool,
    ) -> Vec<(Option<&SourceLine>, LiveShare)> {
        let mut chosen = HashMap::new();
        let mut lines = Vec::new();
        let event = self.events.get(event).into_iter();
        for (id, share) in event.flat_map(|event| event.frames(span, now)) {
            let Some((_, frame)) = self.resolver.frame(id) else {
                continue;
            };
            let of_method = *chosen.entry(frame.symbol).or_insert_with(|| {
                self.method(frame.symbol, share)
                    .is_some_and(|method| is_it(&method))
            });
            if of_method {
                lines.push((frame.line.as_ref(), share));
            }
        }
        lines
    }

    /// The callers of the methods that `is_it` selects. Their totals are the samples of the calls.
    pub fn callers(
        &self,
        event: usize,
        span: LiveSpan,
        now: MonotonicNs,
        is_it: impl Fn(&LiveMethod<'_>) -> bool,
    ) -> Vec<LiveMethod<'_>> {
        let Some(event) = self.events.get(event) else {
            return Vec::new();
        };
        let symbols = event.symbols(span, now);
        let chosen = symbols.filter(|(id, share)| {
            self.method(*id, *share)
                .is_some_and(|method| is_it(&method))
        });
        chosen
            .flat_map(|(callee, _)| event.callers(callee, span, now))
            .filter_map(|(id, share)| self.method(id, share))
            .collect()
    }

    fn method(&self, id: SymbolId, share: LiveShare) -> Option<LiveMethod<'_>> {
        let symbol = self.resolver.symbol_by_id(id)?;
        // The manifest may have been updated since the symbol was found.
        let image = self.resolver.image(symbol.image)?;
        Some(LiveMethod {
            name: &symbol.name,
            inlined: symbol.inlined,
            image: &image.name,
            layer: image.layer,
            share,
        })
    }

    fn record(&mut self, record: &SessionRecord) {
        let start = self.session.manifest().start_time_ns;
        let elapsed = record.time().since(start);
        self.progress.elapsed = self.progress.elapsed.max(elapsed);
        if let SessionRecord::Lost { count, .. } = record {
            self.progress.lost = self.progress.lost.saturating_add(*count);
        }
        let SessionRecord::Sample(sample) = record else {
            self.tasks.follow(record);
            self.resolver.follow(record);
            return;
        };
        self.progress.samples = self.progress.samples.saturating_add(1);
        self.stack.clear();
        for frame in self.frames.of(&mut self.resolver, &sample.borrowed()) {
            if let Some((_, of)) = self.resolver.frame(*frame) {
                let symbol = self.names.first(of.symbol, &self.resolver);
                let frame = *frame;
                self.stack.push(LiveFrame { frame, symbol });
            }
        }
        let thread = ThreadKey {
            pid: sample.pid,
            tid: sample.tid,
        };
        self.tasks.name(thread);
        let task = self.tasks.task(thread, sample.time);
        if let Some(event) = self.events.get_mut(sample.event) {
            event.add(sample.time, sample.period, task, &self.stack);
        }
    }
}
