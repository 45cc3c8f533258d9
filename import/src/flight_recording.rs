//! Imports recordings of Java Flight Recorder.
//!
//! The file is read twice: the lines of each method must be known before its addresses are assigned.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, UNIX_EPOCH},
};

use varid_model::{
    Layer, Rate,
    perf::{PERF_COUNT_SW_BPF_OUTPUT, PERF_TYPE_SOFTWARE},
};
use varid_recording::{EventDesc, Host, SessionEvents, SessionTarget, TargetKind};

use crate::{
    error::{Error, Result},
    format::ImportFormat,
    input::Input,
    java_functions::{ChunkMethods, JavaFunctions, PlacedFunctions},
    jfr::{
        Chunk, Chunks, Damage, EventKind, JavaSample, JavaThread, Stop, VmFacts, Weight,
        is_recording,
    },
    request::{ImportRequest, Imported, Origin, RAW_EVENT, Span},
    text::{TextSample, TextSession, TextSummary},
    text_names::{NamedFrame, TextNames},
    text_tasks::{OTHERS, Task, TextTasks, ThreadName},
};

/// Recordings of Java Flight Recorder.
pub(crate) static READER: ImportFormat = ImportFormat {
    name: "jfr",
    about: "A recording of Java Flight Recorder, of the JDK or of async-profiler",
    noun: "a recording of Java Flight Recorder",
    recognises: |start| is_recording(start.bytes()),
    read: import,
};

/// The process, if the recording does not have its id.
const PROCESS: u32 = 1;
/// The id of the first thread without one of the system. It is larger than any of Linux (`PID_MAX_LIMIT`).
const FIRST_VIRTUAL: u32 = (1 << 22) + 1;
/// The most frames of a sample, as in a session.
const MAX_FRAMES: usize = 8_000;
/// Many events may have the same stack, which a session repeats. The most frames of a session are so many for each byte of the source,
/// or `MIN_ROOM` if that is more: a session is at most 500 times as large, as for compressed sources.
const FRAMES_PER_BYTE: u64 = 62;
const MIN_ROOM: u64 = 1 << 24;
/// The most kinds of events that a note names.
const MAX_NAMED: usize = 3;

/// Classes that only async-profiler has.
const ASYNC_PROFILER: [&str; 2] = ["profiler.Log", "profiler.WallClockSample"];
/// The frame of a sample without a stack.
const UNKNOWN: NamedFrame<'_> = NamedFrame {
    name: "[unknown]",
    image: "[unknown]",
    layer: Layer::Native,
};

/// The result of the first pass.
#[derive(Debug, Default)]
struct Survey {
    /// Number of samples of each of [`EventKind::ALL`].
    counts: [u64; EventKind::ALL.len()],
    functions: JavaFunctions,
    tasks: TextTasks,
    vm: Option<VmFacts>,
    is_of_async_profiler: bool,
    /// The earliest time of a sample.
    start: Option<u64>,
    /// Number of events that are not imported, by their names.
    others: BTreeMap<String, u64>,
    chunks: u64,
    /// The first problem.
    damage: Option<Damage>,
}

/// Imports a recording.
fn import(request: ImportRequest) -> Result<Imported> {
    let input = request.input;
    let mut survey = Survey::read(&input)?;
    let events = survey.events(&input)?;
    let mut names = TextNames::default();
    let functions = std::mem::take(&mut survey.functions).place(&mut names);
    let origin = survey.origin(&input, events);
    let mut session = TextSession::new(origin.session(&request.output)?, names);
    survey.introduce(&mut session)?;
    let mut writing = Writing {
        input: &input,
        survey: &survey,
        functions,
        session,
        span: Span::default(),
        end: 0,
        of_others: 0,
        cut: 0,
        room: MIN_ROOM.max(input.packed.saturating_mul(FRAMES_PER_BYTE)),
    };
    each_chunk(&input, |chunk| match chunk {
        Ok(chunk) => writing.chunk(&chunk),
        // The survey has it.
        Err(_) => Ok(()),
    })?;
    let notes = writing.notes();
    let end = UNIX_EPOCH.checked_add(Duration::from_nanos(writing.end));
    let imported = writing.session.finish(TextSummary {
        format: READER.name,
        writer: Some(survey.writer()),
        arch: "",
        span: writing.span,
        end: end.unwrap_or(UNIX_EPOCH),
        notes,
    })?;
    Ok((imported, input.path))
}

/// Calls a function with each chunk of a recording, or with what is wrong with it.
fn each_chunk(
    input: &Input,
    mut visit: impl FnMut(std::result::Result<Chunk, Damage>) -> Result<()>,
) -> Result<()> {
    let mut chunks = Chunks::new(input.reader()?, input.len);
    loop {
        match chunks.next() {
            Ok(None) => return Ok(()),
            Ok(Some(chunk)) => visit(Ok(chunk))?,
            Err(Stop::Damage(damage)) => visit(Err(damage))?,
            Err(Stop::Io(error)) => return Err(Error::io("read", &input.path)(error)),
        }
    }
}

impl Survey {
    fn read(input: &Input) -> Result<Self> {
        let mut survey = Self::default();
        each_chunk(input, |chunk| {
            let damage = match chunk {
                Ok(chunk) => {
                    survey.add(&chunk);
                    chunk.damage
                }
                Err(damage) => Some(damage),
            };
            survey.damage = survey.damage.or(damage);
            Ok(())
        })?;
        match survey.damage {
            Some(Damage { offset, reason }) if survey.chunks == 0 => Err(Error::Data {
                path: input.path.clone(),
                offset,
                reason,
            }),
            _ => Ok(survey),
        }
    }

    fn add(&mut self, chunk: &Chunk) {
        // Each chunk has it. The process of all threads is that of the first.
        if self.chunks == 0 {
            self.vm.clone_from(&chunk.events.vm);
        }
        self.chunks = self.chunks.saturating_add(1);
        let mut classes = ASYNC_PROFILER.iter();
        self.is_of_async_profiler |= classes.any(|class| chunk.metadata.has_class(class));
        for (class, count) in &chunk.events.others {
            let name = chunk.metadata.event_name(*class).unwrap_or("[unknown]");
            let known = self.others.entry(name.to_owned()).or_default();
            *known = known.saturating_add(*count);
        }
        let mut methods = ChunkMethods::new();
        let mut stacks = HashSet::new();
        for sample in &chunk.events.samples {
            if let Some(count) = self.counts.get_mut(sample.kind) {
                *count = count.saturating_add(1);
            }
            self.start = Some(
                self.start
                    .map_or(sample.time, |start| start.min(sample.time)),
            );
            let thread = chunk.constants.thread(sample.thread);
            self.tasks
                .add(self.task(&thread), &thread.name, sample.time, &[]);
            let stack = chunk.constants.stack(sample.stack);
            let stack = stack.filter(|_| stacks.insert(sample.stack));
            for frame in stack.into_iter().flat_map(|stack| &stack.frames) {
                self.functions.add(*frame, &chunk.constants, &mut methods);
            }
        }
    }

    /// The process, if its id is one of Linux.
    fn pid(&self) -> u32 {
        let pid = self.vm.as_ref().and_then(|vm| u32::try_from(vm.pid).ok());
        pid.filter(|pid| (1..FIRST_VIRTUAL).contains(pid))
            .unwrap_or(PROCESS)
    }

    /// The process and the thread. A virtual thread has an id by the VM's own.
    fn task(&self, thread: &JavaThread) -> Task {
        let of_system = u32::try_from(thread.os_id).ok();
        let of_system = of_system.filter(|tid| (1..FIRST_VIRTUAL).contains(tid));
        let of_vm = u32::try_from(thread.java_id.rem_euclid(1 << 30)).unwrap_or(0);
        let tid = of_system.unwrap_or_else(|| FIRST_VIRTUAL.saturating_add(of_vm));
        (self.pid(), tid)
    }

    fn writer(&self) -> &'static str {
        match self.is_of_async_profiler {
            true => "async-profiler",
            false => "the JDK",
        }
    }

    /// The events that have samples.
    fn events(&self, input: &Input) -> Result<SessionEvents> {
        let sampled = EventKind::ALL.iter().zip(self.counts);
        let sampled = sampled.filter(|(_, count)| *count > 0);
        let mut events = sampled.map(|(kind, _)| {
            let (perf_type, config) = match kind.weight {
                // As the waits that varid records.
                Weight::Duration => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT.into()),
                Weight::Samples(_) | Weight::Bytes(_) => (RAW_EVENT, 0),
            };
            EventDesc::new(kind.name, Rate::Period(1), perf_type, config)
        });
        let Some(first) = events.next() else {
            let why = self.others_note();
            let why = why.unwrap_or_else(|| "it has no events".to_owned());
            let path = input.path.clone();
            return Err(Error::NoSamples { path, why });
        };
        let others = events.collect();
        Ok(SessionEvents { first, others })
    }

    /// The index in the session of an event of [`EventKind::ALL`].
    fn place(&self, kind: usize) -> usize {
        let before = self.counts.iter().take(kind);
        before.filter(|count| **count > 0).count()
    }

    /// What the manifest says of the recording.
    fn origin<'i>(&self, input: &'i Input, events: SessionEvents) -> Origin<'i> {
        let arguments = self.vm.as_ref().map_or("", |vm| vm.arguments.trim());
        let value = match arguments {
            "" => input.path.to_string_lossy().into_owned(),
            arguments => format!("java {arguments}"),
        };
        Origin {
            input,
            format: READER.name,
            writer: Some(self.writer().to_owned()),
            target: SessionTarget {
                kind: TargetKind::Command,
                value,
            },
            host: Host::default(),
            events,
        }
    }

    /// Writes the threads as of the first sample's time.
    fn introduce(&self, session: &mut TextSession) -> Result<()> {
        let start = self.start.unwrap_or(0);
        let pid = self.pid();
        let process = ThreadName {
            name: "java",
            since: 0,
        };
        session.name((pid, pid), process, start)?;
        for (task, name) in self.tasks.first_names() {
            session.name(task, name, start)?;
        }
        Ok(())
    }

    fn others_note(&self) -> Option<String> {
        let mut most: Vec<_> = self.others.iter().collect();
        most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let all = most.iter().map(|(_, count)| **count);
        let all = all.fold(0, u64::saturating_add);
        let named = most.iter().take(MAX_NAMED);
        let named: Vec<_> = named
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        (all > 0).then(|| {
            format!(
                "{all} events of {} other kinds are not imported, most of them {}",
                most.len(),
                named.join(", ")
            )
        })
    }
}

/// The second pass.
struct Writing<'a> {
    input: &'a Input,
    survey: &'a Survey,
    functions: PlacedFunctions,
    session: TextSession,
    /// When the samples were taken.
    span: Span,
    /// The time of the last sample.
    end: u64,
    /// Samples of threads that are not kept.
    of_others: u64,
    /// Samples whose callers the recorder left out.
    cut: u64,
    /// Number of frames that may still be written.
    room: u64,
}

impl Writing<'_> {
    fn chunk(&mut self, chunk: &Chunk) -> Result<()> {
        for _ in 0..chunk.events.malformed {
            self.session.exclude("malformed");
        }
        let mut methods = ChunkMethods::new();
        for sample in &chunk.events.samples {
            self.sample(sample, chunk, &mut methods)?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        sample: &JavaSample,
        chunk: &Chunk,
        methods: &mut ChunkMethods,
    ) -> Result<()> {
        if sample.weight == 0 {
            self.session.exclude("of-no-weight");
            return Ok(());
        }
        let stack = chunk.constants.stack(sample.stack);
        let frames = stack.map_or(&[][..], |stack| &stack.frames);
        let room = self.room.checked_sub(frames.len() as u64);
        let Some(room) = room.filter(|_| frames.len() <= MAX_FRAMES) else {
            self.session.exclude("too-many-frames");
            return Ok(());
        };
        self.room = room;
        for frame in frames {
            match self.functions.place(*frame, &chunk.constants, methods) {
                Some(place) => self.session.push_at(place),
                None => self.session.push(UNKNOWN),
            }
        }
        if frames.is_empty() {
            self.session.push(UNKNOWN);
        }
        if stack.is_some_and(|stack| stack.is_cut) {
            self.cut = self.cut.saturating_add(1);
        }
        self.write(sample, &chunk.constants.thread(sample.thread))
    }

    /// Writes a sample with the current stack.
    fn write(&mut self, sample: &JavaSample, thread: &JavaThread) -> Result<()> {
        let time = sample.time;
        self.span.add(time);
        self.end = self.end.max(time);
        let task = self.survey.tasks.of(self.survey.task(thread), &[]);
        if task == OTHERS {
            self.of_others = self.of_others.saturating_add(1);
        }
        if let Some(name) = self.survey.tasks.name_at(task, time) {
            self.session.name(task, name, name.since)?;
        }
        let sample = TextSample {
            event: self.survey.place(sample.kind),
            time,
            task,
            cpu: 0,
            period: sample.weight,
            ip: None,
        };
        self.session.sample(self.input, &sample)
    }

    /// What is to be known of the session, as sentences.
    fn notes(&self) -> Vec<String> {
        let survey = self.survey;
        let mut notes: Vec<String> = survey.others_note().into_iter().collect();
        if let Some(Damage { offset, reason }) = survey.damage {
            notes.push(format!(
                "a part of the recording cannot be read: offset {offset:#x}: {reason}"
            ));
        }
        let unnamed = survey.tasks.unnamed();
        let counted = [
            (
                self.cut,
                "samples lack callers: the recorder leaves them out beyond its depth, 64 unless -XX:FlightRecorderOptions=stackdepth=N says more",
            ),
            (
                self.of_others,
                "samples are of threads beyond those that are kept, and are shown as of one thread",
            ),
            (
                unnamed,
                "samples have an earlier name of their thread: threads change their names more often than is kept",
            ),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        notes.extend(counted.map(|(count, what)| format!("{count} {what}")));
        notes
    }
}
