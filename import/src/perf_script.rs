//! What does `perf script` say?
//!
//! A sample is a line of the thread, the time and the event, then a line for each frame, then an empty one:
//!
//! ```text
//! prog 1234/1235 [001] 5.123456:     250000 cpu-clock:u:
//!         55d0c01 inner+0x5 (/usr/bin/prog)
//!         55d0c41 main+0x25 (/usr/bin/prog)
//! ```
//!
//! Without callchains the frame is on the first line. `perf script --header` says where it was recorded.

use std::io::BufRead;

use varid_model::{Layer, Rate};
use varid_recording::{EventDesc, Host, SessionEvents, SessionTarget, TargetKind};

use crate::{
    Input,
    error::{Error, Result},
    format::SourceFormat,
    layers,
    lines::Lines,
    request::{ImportRequest, Imported, Origin, Span},
    script_line::{Head, frame},
    summary::ImportSummary,
    text::{NamedFrame, TextSample, TextSession},
};

/// The longest line that is read.
const MAX_LINE: usize = 1 << 20;
/// Most events, as of a session.
const MAX_EVENTS: usize = 1_000;
/// Most frames of a sample, as of a session.
const MAX_FRAMES: usize = 8_000;

/// What the first pass finds: which events there are, and what a header says.
#[derive(Debug, Default)]
struct Survey {
    /// With the period that all of their samples have.
    events: Vec<(String, Option<u64>)>,
    command: String,
    host: Host,
    /// The first line that says something.
    first_line: u64,
}

/// Imports the text of `perf script`.
pub(crate) fn import(request: ImportRequest) -> Result<Imported> {
    let input = request.input;
    let survey = survey(&input)?;
    let mut events = survey.events.iter().map(|(name, period)| {
        let clock = name.contains("-clock");
        let rate = Rate::Period(period.unwrap_or(1));
        EventDesc::new(name.clone(), rate, u32::from(clock), 0)
    });
    let Some(first) = events.next() else {
        return Err(Error::Text {
            path: input.path,
            line: survey.first_line,
            reason: "no sample of 'perf script' in the form COMM PID TIME: EVENT: is there: 'perf script' without -F prints it so",
        });
    };
    let others = events.collect();
    let value = match survey.command.as_str() {
        "" => input.path.to_string_lossy().into_owned(),
        command => command.to_owned(),
    };
    let arch = survey.host.arch.clone();
    let origin = Origin {
        input: &input,
        format: SourceFormat::PerfScript,
        writer: Some("perf".to_owned()),
        target: SessionTarget {
            kind: TargetKind::Command,
            value,
        },
        host: survey.host,
        events: SessionEvents { first, others },
    };
    let mut parser = Parser {
        session: TextSession::new(origin.session(&request.output)?),
        events: survey.events.into_iter().map(|(name, _)| name).collect(),
        current: None,
        ip: None,
        inlined: Vec::new(),
        frames: 0,
        span: Span::default(),
        odd: (0, 0),
    };
    let mut lines = lines(&input)?;
    while let Some((number, line, whole)) = lines.next().map_err(Error::io("read", &input.path))? {
        parser.line(&input, number, &line, whole)?;
    }
    parser.end_sample(&input)?;
    parser.finish(input, &arch)
}

fn lines(input: &Input) -> Result<Lines<impl BufRead + use<>>> {
    Ok(Lines::new(input.reader()?, MAX_LINE))
}

fn survey(input: &Input) -> Result<Survey> {
    let mut survey = Survey::default();
    let mut known = std::collections::HashMap::<String, usize>::new();
    let mut lines = lines(input)?;
    while let Some((number, line, _)) = lines.next().map_err(Error::io("read", &input.path))? {
        if let Some(comment) = line.strip_prefix('#') {
            let said = |key: &str| {
                let rest = comment.trim_start().strip_prefix(key)?;
                Some(rest.trim_start().strip_prefix(':')?.trim().to_owned())
            };
            let Host { kernel, arch, .. } = &mut survey.host;
            for (key, value) in [
                ("cmdline", &mut survey.command),
                ("os release", kernel),
                ("arch", arch),
            ] {
                if let Some(text) = said(key) {
                    *value = text;
                }
            }
            continue;
        }
        if survey.first_line == 0 && !line.trim().is_empty() {
            survey.first_line = number;
        }
        let Some(head) = Head::parse(&line) else {
            continue;
        };
        match known.get(head.event) {
            Some(place) => {
                if let Some((_, period)) = survey.events.get_mut(*place) {
                    *period = period.filter(|_| *period == head.period);
                }
            }
            None if survey.events.len() < MAX_EVENTS => {
                known.insert(head.event.to_owned(), survey.events.len());
                survey.events.push((head.event.to_owned(), head.period));
            }
            None => {}
        }
    }
    Ok(survey)
}

/// A sample whose frames follow.
#[derive(Debug)]
struct Current {
    comm: String,
    pid: u32,
    tid: u32,
    cpu: u32,
    time: u64,
    period: u64,
    /// None: there are too many events.
    event: Option<usize>,
}

#[derive(Debug)]
struct Parser {
    session: TextSession,
    events: Vec<String>,
    current: Option<Current>,
    /// The sample's first address.
    ip: Option<u64>,
    /// Functions that are inlined in the next frame, whose file is that frame's.
    inlined: Vec<String>,
    frames: usize,
    span: Span,
    /// Lines that are neither, and the first of them.
    odd: (u64, u64),
}

impl Parser {
    fn line(&mut self, input: &Input, number: u64, line: &str, whole: bool) -> Result<()> {
        if line.starts_with('#') {
            return Ok(());
        }
        if line.trim().is_empty() {
            return self.end_sample(input);
        }
        if self.current.is_some()
            && let Some((address, function, image)) = frame(line)
        {
            self.frame(input, address, function, image);
            return Ok(());
        }
        let Some(head) = Head::parse(line).filter(|_| whole) else {
            if self.odd.0 == 0 {
                self.odd.1 = number;
            }
            self.odd.0 = self.odd.0.saturating_add(1);
            return Ok(());
        };
        self.end_sample(input)?;
        self.current = Some(Current {
            comm: head.comm.to_owned(),
            pid: head.pid,
            tid: head.tid,
            cpu: head.cpu,
            time: head.time,
            period: head.period.unwrap_or(1),
            event: self.events.iter().position(|name| name == head.event),
        });
        if let Some((address, function, image)) = frame(head.rest) {
            self.frame(input, address, function, image);
        }
        Ok(())
    }

    fn frame(&mut self, input: &Input, address: u64, function: &str, image: &str) {
        self.ip.get_or_insert(address);
        self.frames = self.frames.saturating_add(1);
        if self.frames > MAX_FRAMES {
            return;
        }
        if image == "inlined" {
            self.inlined.push(function.to_owned());
            return;
        }
        let layer = layers::of_named(image);
        let image = match image {
            image if image.starts_with("[kernel.") => "[kernel]",
            image => image,
        };
        for name in std::mem::take(&mut self.inlined) {
            self.session.push(
                input,
                NamedFrame {
                    name: &name,
                    image,
                    layer,
                },
            );
        }
        let name = match function {
            "" | "[unknown]" => "[unknown]",
            name => name,
        };
        self.session.push(input, NamedFrame { name, image, layer });
    }

    fn end_sample(&mut self, input: &Input) -> Result<()> {
        let inlined = std::mem::take(&mut self.inlined);
        let (ip, frames) = (self.ip.take(), std::mem::take(&mut self.frames));
        let Some(current) = self.current.take() else {
            self.session.clear();
            return Ok(());
        };
        for name in inlined {
            let image = "[unknown]";
            let layer = Layer::Native;
            self.session.push(
                input,
                NamedFrame {
                    name: &name,
                    image,
                    layer,
                },
            );
        }
        let Some(event) = current.event else {
            self.session.exclude("of-no-event");
            return Ok(());
        };
        if self.session.is_empty() {
            self.session.exclude("without-frame");
            return Ok(());
        }
        if frames > MAX_FRAMES {
            self.session.exclude("too-many-frames");
            return Ok(());
        }
        self.span.add(current.time);
        self.session.sample(&TextSample {
            event,
            time: current.time,
            pid: current.pid,
            tid: current.tid,
            cpu: current.cpu,
            period: current.period,
            comm: &current.comm,
            ip,
        })
    }

    fn finish(mut self, input: Input, arch: &str) -> Result<Imported> {
        let named_images = self.session.write_images(arch)?;
        let notes = match self.odd {
            (0, _) => Vec::new(),
            (count, first) => vec![format!(
                "{count} lines are neither the first of a sample nor a frame, line {first} is the first of them; they are left out"
            )],
        };
        let summary = ImportSummary {
            format: SourceFormat::PerfScript,
            writer: Some("perf".to_owned()),
            samples: self.session.writer.counts().samples,
            excluded: self.session.excluded.clone(),
            lost: 0,
            unwound: 0,
            named_images,
            notes: notes.clone(),
        };
        let manifest = self.session.writer.manifest_mut();
        manifest.notes = notes;
        manifest.counts.filtered = self.session.excluded;
        self.span.write(manifest, input.modified);
        Ok(((self.session.writer, summary), input.path))
    }
}
