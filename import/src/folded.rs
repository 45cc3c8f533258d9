//! Imports folded stacks.
//!
//! A line is a stack and a number. The frames of the stack are listed from the outermost to the leaf, separated by semicolons. Brendan
//! Gregg's stackcollapse scripts, async-profiler and `varid export -f folded` write this format. With `--annotate-*` of the scripts and
//! `-a` of async-profiler, frames are marked: `_[k]` kernel, `_[j]` code generated at run time, `_[i]` inlined.

use std::collections::HashMap;

use varid_model::{Layer, Rate};
use varid_recording::{EventDesc, Host, SessionTarget, TargetKind};

use crate::{
    error::{Error, Result},
    folded_line::{are_likely, frame, image, is_comment, is_marked, split},
    format::ImportFormat,
    input::Input,
    limits::{MAX_SHORT_NAME, cut},
    lines::Lines,
    other_format,
    request::{ImportRequest, Imported, Origin, RAW_EVENT, Span},
    start::SourceStart,
    text::{TextSample, TextSession, TextSummary},
    text_names::{NamedFrame, TextNames},
    text_tasks::{MAX_THREADS, ThreadName},
};

/// Folded stacks.
pub(crate) static READER: ImportFormat = ImportFormat {
    name: "folded",
    about: "Folded stacks, a line for each: of stackcollapse scripts, async-profiler, 'varid export'",
    noun: "folded stacks",
    recognises,
    read: import,
};

/// The longest line that is read.
const MAX_LINE: usize = 4 << 20;
/// The process of all stacks. The ids of its threads follow.
const PROCESS: u32 = 1;

/// Lines of other formats end in numbers, too.
fn recognises(start: &SourceStart<'_>) -> bool {
    let lines = start.lines();
    let lines = lines.filter(|_| other_format::of_start(start.bytes()).is_none());
    lines.is_some_and(are_likely)
}

/// Imports folded stacks.
fn import(request: ImportRequest) -> Result<Imported> {
    let input = request.input;
    let path = &input.path;
    let name = path.file_stem().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let origin = Origin {
        input: &input,
        format: READER.name,
        writer: None,
        target: SessionTarget {
            kind: TargetKind::Command,
            value: path.to_string_lossy().into_owned(),
        },
        host: Host::default(),
        events: EventDesc::new("samples", Rate::Period(1), RAW_EVENT, 0).into(),
    };
    let marked = match request.first_is_frame {
        true => false,
        false => first_is_marked(&input)?,
    };
    let session = TextSession::new(origin.session(&request.output)?, TextNames::default());
    let mut stacks = Stacks {
        session,
        name: &name,
        first_is_frame: request.first_is_frame || marked,
        threads: Threads::default(),
        number: 0,
        bad_line: None,
    };
    let mut lines = Lines::new(input.reader()?, MAX_LINE);
    while let Some((at, line, whole)) = lines.next().map_err(Error::io("read", path))? {
        if line.trim().is_empty() || is_comment(&line) {
            continue;
        }
        match split(&line).filter(|_| whole) {
            Some((_, 0)) => stacks.session.exclude("of-no-weight"),
            Some((stack, count)) => stacks.add(&input, stack, count)?,
            None => {
                stacks.bad_line.get_or_insert(at);
                let reason = if whole { "malformed" } else { "too-long" };
                stacks.session.exclude(reason);
            }
        }
    }
    let notes = stacks.notes(marked);
    finish(stacks.session, input, notes)
}

/// Adds the stacks of a text to its session.
struct Stacks<'a> {
    session: TextSession,
    /// The name of the process.
    name: &'a str,
    /// Whether the first entry of a stack is a frame, instead of the thread's name.
    first_is_frame: bool,
    threads: Threads,
    /// Number of samples so far.
    number: u64,
    /// The first line that is not a folded stack.
    bad_line: Option<u64>,
}

impl Stacks<'_> {
    /// Adds a sample that weighs `count`.
    fn add(&mut self, input: &Input, stack: &str, count: u64) -> Result<()> {
        let (thread, frames) = match self.first_is_frame {
            true => (self.name, Some(stack)),
            false => match stack.split_once(';') {
                Some((thread, frames)) => (thread, Some(frames)),
                None => (stack, None),
            },
        };
        push(&mut self.session, thread, frames);
        let thread = cut(thread, MAX_SHORT_NAME);
        let tid = match thread == self.name {
            true => PROCESS,
            false => self.threads.id(thread),
        };
        let named = ThreadName {
            name: match tid {
                PROCESS => self.name,
                _ => thread,
            },
            since: 0,
        };
        self.session.name((PROCESS, tid), named, self.number)?;
        let sample = TextSample {
            event: 0,
            time: self.number,
            task: (PROCESS, tid),
            cpu: 0,
            period: count,
            ip: None,
        };
        self.session.sample(input, &sample)?;
        self.number = self.number.saturating_add(1);
        Ok(())
    }

    /// What is to be known of the session, as sentences. `marked`: a first entry has a frame's mark.
    fn notes(&self, marked: bool) -> Vec<String> {
        let mut notes = vec![
            "folded stacks have no times: a line is a sample that weighs its number, and samples follow one another by a nanosecond"
                .to_owned(),
        ];
        if marked {
            notes.push(
                "the first entry of a stack has a frame's mark: first entries are frames here, not threads"
                    .to_owned(),
            );
        }
        notes.extend(self.bad_line.map(|line| {
            format!("line {line} is no folded stack, which is FRAME;FRAME;FRAME NUMBER; it and others like it are counted as malformed")
        }));
        notes.extend(self.threads.note());
        notes
    }
}

/// Returns true if the first entry of a stack is marked as a frame. async-profiler, for example, writes threads only with an option.
fn first_is_marked(input: &Input) -> Result<bool> {
    let mut lines = Lines::new(input.reader()?, MAX_LINE);
    while let Some((_, line, _)) = lines.next().map_err(Error::io("read", &input.path))? {
        let stack = split(&line).map(|(stack, _)| stack);
        let first = stack.and_then(|stack| stack.split(';').next());
        if first.is_some_and(is_marked) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds a stack's frames to the session. If there are none, the thread's name becomes the only frame.
fn push(session: &mut TextSession, thread: &str, frames: Option<&str>) {
    let mut callees: Vec<NamedFrame<'_>> = Vec::new();
    let mut caller = Layer::Native;
    for text in frames.into_iter().flat_map(|frames| frames.split(';')) {
        let (name, layer) = frame(text, caller);
        caller = layer;
        let image = image(layer);
        callees.push(NamedFrame { name, image, layer });
    }
    if callees.is_empty() {
        let layer = Layer::Native;
        callees.push(NamedFrame {
            name: thread,
            image: image(layer),
            layer,
        });
    }
    for frame in callees.iter().rev() {
        session.push(*frame);
    }
}

/// The ids of threads by name.
#[derive(Default)]
struct Threads {
    ids: HashMap<String, u32>,
    /// Number of samples of threads beyond those that have ids.
    unnamed: u64,
}

impl Threads {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        if self.ids.len() >= MAX_THREADS {
            self.unnamed = self.unnamed.saturating_add(1);
            return PROCESS;
        }
        let next = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let id = PROCESS.saturating_add(1).saturating_add(next);
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// Returns a note if threads are missing.
    fn note(&self) -> Option<String> {
        (self.unnamed > 0).then(|| {
            format!(
                "{} samples are of threads beyond the first {MAX_THREADS}, which are shown as one",
                self.unnamed
            )
        })
    }
}

fn finish(session: TextSession, input: Input, notes: Vec<String>) -> Result<Imported> {
    let imported = session.finish(TextSummary {
        format: READER.name,
        writer: None,
        arch: "",
        span: Span::default(),
        end: input.modified,
        notes,
    })?;
    Ok((imported, input.path))
}
