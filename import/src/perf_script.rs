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

use std::io::{BufReader, Seek};

use varid_model::{Layer, Rate};
use varid_recording::{EventDesc, Host, SessionTarget, SessionWriter, TargetKind};

use crate::{
    Input,
    error::{Error, Result},
    format::SourceFormat,
    layers,
    request::{ImportRequest, Imported, Origin, Span},
    summary::ImportSummary,
    text::{Lines, NamedFrame, TextSample, TextSession},
};

/// The longest line that is read.
const MAX_LINE: usize = 1 << 20;
/// Most events, as of a session.
const MAX_EVENTS: usize = 1_000;
/// Most frames of a sample, as of a session.
const MAX_FRAMES: usize = 8_000;

/// The first line of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head<'a> {
    comm: &'a str,
    pid: u32,
    tid: u32,
    cpu: u32,
    time: u64,
    period: Option<u64>,
    event: &'a str,
    /// What follows: the frame of a sample without callchain, or what a tracepoint says.
    rest: &'a str,
}

/// Whether a line is the first of a sample.
pub(crate) fn is_head(line: &str) -> bool {
    Head::parse(line).is_some()
}

impl<'a> Head<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = words(line);
        // The name may have blanks, and words that look like an id.
        let time_at = words.iter().position(|(_, word)| time(word).is_some())?;
        let time = time(words.get(time_at)?.1)?;
        let mut before = words.drain(..time_at).rev();
        let (mut at, mut word) = before.next()?;
        let mut cpu = 0;
        // The CPU and, with -F flags or +iflags, more words in brackets or of letters and dots.
        loop {
            if let Some(number) = word
                .strip_prefix('[')
                .and_then(|word| word.strip_suffix(']'))
            {
                cpu = number.parse().ok()?;
            } else if ids(word).is_some() {
                break;
            } else if !word.bytes().all(is_flag) {
                return None;
            }
            (at, word) = before.next()?;
        }
        let (pid, tid) = ids(word)?;
        let comm = line.get(..at)?.trim();
        drop(before);
        let mut behind = words.into_iter().skip(1);
        let mut event = behind.next()?;
        let period = event.1.parse().ok();
        if period.is_some() {
            event = behind.next()?;
        }
        let (at, word) = event;
        let rest = line.get(at.checked_add(word.len())?..)?.trim();
        Some(Self {
            comm: Some(comm).filter(|comm| !comm.is_empty())?,
            pid,
            tid,
            cpu,
            time,
            period,
            event: word.strip_suffix(':').filter(|event| !event.is_empty())?,
            rest,
        })
    }
}

/// The words of a line with their places.
fn words(line: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    // What follows the event is never needed as words; a name with more blanks is none.
    while words.len() < 64 {
        let start = rest.find(|c: char| !c.is_ascii_whitespace());
        let Some((_, word)) = start.and_then(|start| rest.split_at_checked(start)) else {
            break;
        };
        let end = word
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        let left = word.len().saturating_add(behind.len());
        words.push((line.len().saturating_sub(left), word));
        rest = behind;
    }
    words
}

/// A letter, digit or dot of `-F +flags`, such as `d..1.`.
fn is_flag(byte: u8) -> bool {
    b".#+dDnNuUhHsSlLbBp".contains(&byte) || byte.is_ascii_digit()
}

/// `pid`, `pid/tid`, or the only id that there is.
fn ids(word: &str) -> Option<(u32, u32)> {
    let (pid, tid) = word.split_once('/').unwrap_or((word, word));
    // Tasks that are gone have -1.
    let id = |text: &str| match text {
        "-1" => Some(u32::MAX),
        text => text.parse().ok(),
    };
    Some((id(pid)?, id(tid)?))
}

/// Seconds with a fraction, and a colon, in nanoseconds.
fn time(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let missing = 9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let fraction = fraction
        .parse::<u64>()
        .ok()?
        .checked_mul(10u64.checked_pow(missing)?)?;
    let seconds = seconds.parse::<u64>().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// A frame: its address, its function and its file.
fn frame(line: &str) -> Option<(u64, &str, &str)> {
    let line = line.trim();
    let (address, rest) = line.split_once(|c: char| c.is_ascii_whitespace())?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim_start();
    let inner = rest.strip_suffix(')')?;
    let inner = inner.strip_suffix(" (deleted)").unwrap_or(inner);
    // The file's path may have blanks and parentheses; before it there is one blank, or the function is missing.
    let (function, image) = match inner.rfind(" (") {
        Some(at) => inner.split_at_checked(at)?,
        None => ("", inner),
    };
    let image = image.trim_start().strip_prefix('(')?;
    let function = match function.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => function,
    };
    Some((address, function.trim(), image))
}

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
    if survey.events.is_empty() {
        return Err(Error::Text {
            path: input.path,
            line: survey.first_line,
            reason: "no sample of 'perf script' in the form COMM PID TIME: EVENT: is there: 'perf script' without -F prints it so",
        });
    }
    let value = match survey.command.as_str() {
        "" => input.path.to_string_lossy().into_owned(),
        command => command.to_owned(),
    };
    let arch = survey.host.arch.clone();
    let desc = |(name, period): &(String, Option<u64>)| {
        let clock = name.contains("-clock");
        let rate = Rate::Period(period.unwrap_or(1));
        EventDesc::new(name.clone(), rate, u32::from(clock), 0)
    };
    let origin = Origin {
        input: &input,
        format: SourceFormat::PerfScript,
        writer: Some("perf".to_owned()),
        target: SessionTarget {
            kind: TargetKind::Command,
            value,
        },
        host: survey.host,
        events: survey.events.iter().map(desc).collect(),
    };
    let Some(manifest) = origin.manifest() else {
        return Err(Error::NoSamples {
            path: input.path,
            why: "there is no event".to_owned(),
        });
    };
    let writer = SessionWriter::create(&request.output, manifest)?;
    let mut parser = Parser {
        session: TextSession::new(writer),
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

fn lines(input: &Input) -> Result<Lines<BufReader<std::fs::File>>> {
    let mut file = input
        .file
        .try_clone()
        .map_err(Error::io("read", &input.path))?;
    file.rewind().map_err(Error::io("read", &input.path))?;
    Ok(Lines::new(
        BufReader::with_capacity(1 << 16, file),
        MAX_LINE,
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_sample_has_many_forms() {
        let head = Head {
            comm: "prog",
            pid: 12,
            tid: 12,
            cpu: 0,
            time: 5_123_456_000,
            period: None,
            event: "cycles:u",
            rest: "",
        };
        for (line, expected) in [
            ("prog    12     5.123456: cycles:u: ", head),
            (
                "prog 12 [003] 5.123456:  250 cycles:u: ",
                Head {
                    cpu: 3,
                    period: Some(250),
                    ..head
                },
            ),
            (
                "a b 7 12/13 [000] 5.123456789: sched:sched_switch: prev=1",
                Head {
                    comm: "a b 7",
                    tid: 13,
                    time: 5_123_456_789,
                    event: "sched:sched_switch",
                    rest: "prev=1",
                    ..head
                },
            ),
            (
                "   swapper     0 [000] d..1. 5.123456: cycles:u:  ffff f ([k])",
                Head {
                    comm: "swapper",
                    pid: 0,
                    tid: 0,
                    rest: "ffff f ([k])",
                    ..head
                },
            ),
            (
                ":-1 -1 5.123456: cycles:u: ",
                Head {
                    comm: ":-1",
                    pid: u32::MAX,
                    tid: u32::MAX,
                    ..head
                },
            ),
        ] {
            assert_eq!(Head::parse(line), Some(expected), "{line}");
        }
        for line in [
            "",
            "\t 4005 main (/bin/a)",
            "prog 5.123456: cycles: ",
            "prog 12 5.1: x",
            "12 5.123456: cycles:",
        ] {
            assert_eq!(Head::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_frame_has_an_address_a_function_and_a_file() {
        for (line, expected) in [
            ("\t 4005 main+0x1f (/bin/a)", (0x4005, "main", "/bin/a")),
            (
                " 4005 std::f(int, (anonymous namespace)::g)+0x2 (/bin/a b)",
                (0x4005, "std::f(int, (anonymous namespace)::g)", "/bin/a b"),
            ),
            (
                "4005 [unknown] (/bin/a (deleted))",
                (0x4005, "[unknown]", "/bin/a"),
            ),
            (
                "ffffffff81000000 do_idle ([kernel.kallsyms])",
                (0xffff_ffff_8100_0000, "do_idle", "[kernel.kallsyms]"),
            ),
            ("4005 (/bin/a)", (0x4005, "", "/bin/a")),
            ("4005 f (inlined)", (0x4005, "f", "inlined")),
        ] {
            assert_eq!(frame(line), Some(expected), "{line}");
        }
        for line in ["", "  main.c:12", "zzzz main (/bin/a)", "4005 main"] {
            assert_eq!(frame(line), None, "{line}");
        }
    }
}
