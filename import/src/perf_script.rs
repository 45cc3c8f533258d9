//! Imports the text of `perf script`.
//!
//! The text is read twice: all names, and the times since which they are valid, must be known before the first sample is written, because
//! times may go back.

use std::{collections::HashMap, io::BufRead};

use varid_model::{MonotonicNs, Rate, perf::PERF_TYPE_SOFTWARE};
use varid_recording::{EventDesc, SessionEvents, SessionTarget, TargetKind};

use crate::{
    Input,
    error::{Error, Result},
    format::ImportFormat,
    layers,
    lines::Lines,
    request::{ImportRequest, Imported, Origin, RAW_EVENT, Span},
    script_header::ScriptHeader,
    script_samples::{OddLines, ScriptSample, ScriptSamples, is_script},
    text::{TextSample, TextSession, TextSummary},
    text_names::{NamedFrame, TextNames},
    text_tasks::{OTHERS, TextTasks},
};

/// The text of `perf script`.
pub(crate) static READER: ImportFormat = ImportFormat {
    name: "perf-script",
    about: "What 'perf script' prints",
    noun: "text of 'perf script'",
    recognises: |start| start.lines().is_some_and(is_script),
    read: import,
};

/// The longest line that is read.
const MAX_LINE: usize = 1 << 20;
/// The most events, as in a session.
const MAX_EVENTS: usize = 1_000;
/// The name of the event if a text has no events.
const NO_EVENT: &str = "samples";
/// A part of the names of the kernel's clock events: cpu-clock, task-clock.
const CLOCK: &str = "-clock";
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// An event of a text.
#[derive(Debug)]
struct ScriptEvent {
    name: String,
    /// The weight of a sample without a period.
    period: u64,
    rate: Rate,
    /// Periods are in nanoseconds.
    is_clock: bool,
}

/// The periods of an event's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Periods {
    /// No sample has one.
    Absent,
    /// All samples have this one.
    Same(u64),
    /// The periods differ, or some samples have none.
    Various,
}

impl Periods {
    const fn of(sample: &ScriptSample) -> Self {
        match sample.period {
            Some(period) => Self::Same(period),
            None => Self::Absent,
        }
    }
}

/// The result of the first pass.
#[derive(Debug, Default)]
struct Survey {
    /// The names of events, with the periods of their samples.
    events: Vec<(String, Periods)>,
    by_name: HashMap<String, usize>,
    names: TextNames,
    tasks: TextTasks,
    /// Number of samples so far.
    number: u64,
    /// The earliest time of a sample.
    start: Option<u64>,
    has_times: bool,
    header: ScriptHeader,
    odd: OddLines,
    first_line: u64,
}

/// Imports the text of `perf script`.
fn import(request: ImportRequest) -> Result<Imported> {
    let input = request.input;
    let mut survey = Survey::read(&input)?;
    let events: Vec<_> = survey
        .events
        .iter()
        .map(|(name, periods)| survey.event(name, *periods))
        .collect();
    let mut described = events.iter().map(ScriptEvent::described);
    let Some(first) = described.next() else {
        return Err(Error::Text {
            path: input.path,
            line: survey.first_line,
            reason: "no sample of 'perf script' in the form COMM PID TIME: EVENT: is there: 'perf script' without -F prints it so",
        });
    };
    let others = described.collect();
    let origin = survey.origin(&input, SessionEvents { first, others });
    let writer = origin.session(&request.output)?;
    let mut session = TextSession::new(writer, std::mem::take(&mut survey.names));
    survey.introduce(&mut session, &input)?;
    let written = survey.write_samples(&mut session, &input, &events)?;
    let mut notes = survey.notes(&events);
    if written.of_others > 0 {
        notes.push(format!(
            "the text has more threads, or processes with files, than are kept: {} samples are shown as of one thread",
            written.of_others
        ));
    }
    let imported = session.finish(TextSummary {
        format: READER.name,
        writer: Some("perf"),
        arch: &survey.header.host.arch,
        span: written.span,
        end: survey.header.captured.unwrap_or(input.modified),
        notes,
    })?;
    Ok((imported, input.path))
}

/// What has been written of a text.
#[derive(Debug, Default)]
struct Written {
    /// When its samples were taken.
    span: Span,
    /// Samples of threads that are not kept.
    of_others: u64,
}

fn samples(input: &Input) -> Result<ScriptSamples<impl BufRead + use<>>> {
    Ok(ScriptSamples::new(Lines::new(input.reader()?, MAX_LINE)))
}

/// Returns the reason if a sample is not imported.
fn excluded(sample: &ScriptSample) -> Option<&'static str> {
    if sample.is_cut {
        return Some("too-many-frames");
    }
    // Prose may look like the first line of a sample without a time. The name of a tracepoint has a colon.
    let is_doubtful = sample.time.is_none() && !sample.event_name().contains(':');
    (is_doubtful && sample.frames.is_empty()).then_some("without-frame")
}

/// Returns the frames of a sample, leaf first. There is at least one.
fn frames(sample: &ScriptSample) -> impl Iterator<Item = NamedFrame<'_>> {
    const UNKNOWN: &str = "[unknown]";
    let of_frames = sample.frames.iter().map(|frame| NamedFrame {
        name: &frame.function,
        image: &frame.file,
        layer: layers::of_named(&frame.file),
    });
    let alone = sample.frames.is_empty().then(|| NamedFrame {
        name: UNKNOWN,
        image: UNKNOWN,
        layer: layers::of_named(UNKNOWN),
    });
    of_frames.chain(alone)
}

impl ScriptSample {
    fn event_name(&self) -> &str {
        self.event.as_deref().unwrap_or(NO_EVENT)
    }
}

impl ScriptEvent {
    fn described(&self) -> EventDesc {
        let kind = match self.is_clock {
            true => PERF_TYPE_SOFTWARE,
            false => RAW_EVENT,
        };
        EventDesc::new(self.name.clone(), self.rate, kind, 0)
    }
}

impl Survey {
    fn read(input: &Input) -> Result<Self> {
        let mut survey = Self::default();
        let mut samples = samples(input)?;
        while let Some(sample) = samples.next().map_err(Error::io("read", &input.path))? {
            survey.add(&sample);
        }
        survey.header = samples.header;
        survey.odd = samples.odd;
        survey.first_line = samples.first_line;
        // Events that are not in the header come last.
        let Self { header, events, .. } = &mut survey;
        events.sort_by_key(|(name, _)| {
            let place = header.place(name);
            (place.is_none(), place)
        });
        let places = survey.events.iter().enumerate();
        survey.by_name = places
            .map(|(place, (name, _))| (name.clone(), place))
            .collect();
        Ok(survey)
    }

    fn add(&mut self, sample: &ScriptSample) {
        if excluded(sample).is_some() {
            return;
        }
        let name = sample.event_name();
        match self.by_name.get(name) {
            Some(place) => {
                if let Some((_, periods)) = self.events.get_mut(*place)
                    && *periods != Periods::of(sample)
                {
                    *periods = Periods::Various;
                }
            }
            None if self.events.len() < MAX_EVENTS => {
                self.by_name.insert(name.to_owned(), self.events.len());
                self.events.push((name.to_owned(), Periods::of(sample)));
            }
            None => return,
        }
        let mut images: Vec<_> = frames(sample)
            .map(|frame| self.names.place(frame).image)
            .collect();
        images.sort_unstable();
        images.dedup();
        self.has_times |= sample.time.is_some();
        let time = sample.time.unwrap_or(self.number);
        self.number = self.number.saturating_add(1);
        self.start = Some(self.start.map_or(time, |start| start.min(time)));
        let task = (sample.pid, sample.tid);
        self.tasks.add(task, &sample.comm, time, &images);
    }

    /// Determines the weight of an event's samples without a period: nanoseconds if it is a clock and the header has its frequency.
    fn event(&self, name: &str, periods: Periods) -> ScriptEvent {
        let is_clock = name.contains(CLOCK);
        let said = self.header.rate(name);
        let (rate, unsaid) = match (said, periods) {
            (Some(Rate::Frequency(hz)), _) if is_clock && hz > 0 => {
                (Rate::Frequency(hz), SECOND.checked_div(hz))
            }
            (Some(Rate::Frequency(hz)), _) => (Rate::Frequency(hz), None),
            (_, Periods::Same(period @ 1..)) | (Some(Rate::Period(period @ 1..)), _) => {
                (Rate::Period(period), Some(period))
            }
            // A period of 0 means that there is none.
            (Some(Rate::Period(0)) | None, _) => (Rate::Period(1), None),
        };
        let has_weights = periods != Periods::Absent || unsaid.is_some();
        ScriptEvent {
            name: name.to_owned(),
            period: unsaid.unwrap_or(1),
            rate,
            is_clock: is_clock && has_weights,
        }
    }

    /// What the manifest says of the text.
    fn origin<'i>(&self, input: &'i Input, events: SessionEvents) -> Origin<'i> {
        let value = match self.header.command.as_str() {
            "" => input.path.to_string_lossy().into_owned(),
            command => command.to_owned(),
        };
        Origin {
            input,
            format: READER.name,
            writer: Some("perf".to_owned()),
            target: SessionTarget {
                kind: TargetKind::Command,
                value,
            },
            host: self.header.host.clone(),
            events,
        }
    }

    /// Writes the samples in the second pass.
    fn write_samples(
        &self,
        session: &mut TextSession,
        input: &Input,
        events: &[ScriptEvent],
    ) -> Result<Written> {
        let mut written = Written::default();
        let mut samples = samples(input)?;
        let mut number = 0u64;
        while let Some(sample) = samples.next().map_err(Error::io("read", &input.path))? {
            let place = self.by_name.get(sample.event_name()).copied();
            let Some((place, event)) = place.and_then(|place| Some((place, events.get(place)?)))
            else {
                session.exclude("of-no-event");
                continue;
            };
            if let Some(reason) = excluded(&sample) {
                session.exclude(reason);
                continue;
            }
            for frame in frames(&sample) {
                session.push(frame);
            }
            let time = sample.time.unwrap_or(number);
            number = number.saturating_add(1);
            written.span.add(time);
            let task = self.tasks.of((sample.pid, sample.tid), session.images());
            if task == OTHERS {
                written.of_others = written.of_others.saturating_add(1);
            }
            if let Some(name) = self.tasks.name_at(task, time) {
                session.name(task, name, name.since)?;
            }
            let sample = TextSample {
                event: place,
                time,
                task,
                cpu: sample.cpu,
                period: sample.period.unwrap_or(event.period),
                ip: sample.ip,
            };
            session.sample(input, &sample)?;
        }
        Ok(written)
    }

    /// Writes the threads and mappings as of the first sample's time.
    fn introduce(&self, session: &mut TextSession, input: &Input) -> Result<()> {
        let start = self.start.unwrap_or(0);
        for (task, name) in self.tasks.first_names() {
            session.name(task, name, start)?;
        }
        for (pid, image) in self.tasks.maps() {
            session.map(input, pid, image, MonotonicNs::new(start))?;
        }
        Ok(())
    }

    fn notes(&self, events: &[ScriptEvent]) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.has_times {
            notes.push(
                "the text has no times: samples follow one another by a nanosecond".to_owned(),
            );
        }
        let without = |event: &&ScriptEvent| event.name.contains(CLOCK) && !event.is_clock;
        let clocks: Vec<_> = events
            .iter()
            .filter(without)
            .map(|event| event.name.as_str())
            .collect();
        if !clocks.is_empty() {
            notes.push(format!(
                "the text does not say how often {} is sampled: each sample weighs 1",
                clocks.join(", ")
            ));
        }
        let unnamed = self.tasks.unnamed();
        if unnamed > 0 {
            notes.push(format!(
                "threads change their names more often than is kept: {unnamed} samples have a name of before"
            ));
        }
        if self.odd.count > 0 {
            notes.push(format!(
                "{} lines are neither the first of a sample nor a frame, line {} is the first of them; they are left out",
                self.odd.count, self.odd.first
            ));
        }
        notes
    }
}
