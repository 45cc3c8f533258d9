//! Reads the samples in a text of `perf script`.
//!
//! A sample is a line with the thread, the time and the event, then a line for each frame, then an empty line:
//!
//! ```text
//! prog 1234/1235 [001] 5.123456:     250000 cpu-clock:u:
//!         55d0c01 inner+0x5 (/usr/bin/prog)
//!         55d0c41 main+0x25 (/usr/bin/prog)
//! ```
//!
//! Without callchains, the frame is on the first line. Tracepoints have their fields there. Each first line is a sample, with or without
//! frames.

use std::io::{self, BufRead};

use crate::{
    limits::{MAX_SHORT_NAME, cut},
    lines::Lines,
    script_frame::Frame,
    script_header::ScriptHeader,
    script_line::Head,
};

/// The most frames of a sample, as in a session.
const MAX_FRAMES: usize = 8_000;

/// A frame that a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptFrame {
    pub(crate) function: String,
    /// The file. For an inlined function, it is the file of the frame that it is inlined into.
    pub(crate) file: String,
}

/// A sample of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptSample {
    pub(crate) comm: String,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    pub(crate) time: Option<u64>,
    pub(crate) period: Option<u64>,
    pub(crate) event: Option<String>,
    /// The address of the first frame.
    pub(crate) ip: Option<u64>,
    /// The frames, leaf first.
    pub(crate) frames: Vec<ScriptFrame>,
    /// There were more frames than a session's sample can have.
    pub(crate) is_cut: bool,
    /// Number of frames at the end whose file is not known yet.
    inlined: usize,
}

/// Whether the samples of a text have times. Either all of them do, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Present,
    Absent,
}

/// Lines that are neither the first line of a sample nor a frame.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct OddLines {
    pub(crate) count: u64,
    /// Number of the first such line.
    pub(crate) first: u64,
}

/// Reads the samples of a text in order.
pub(crate) struct ScriptSamples<R> {
    lines: Lines<R>,
    current: Option<ScriptSample>,
    times: Option<Times>,
    pub(crate) header: ScriptHeader,
    pub(crate) odd: OddLines,
    /// Number of the first line that is neither empty nor a comment.
    pub(crate) first_line: u64,
}

impl<R: BufRead> ScriptSamples<R> {
    pub(crate) fn new(lines: Lines<R>) -> Self {
        Self {
            lines,
            current: None,
            times: None,
            header: ScriptHeader::default(),
            odd: OddLines::default(),
            first_line: 0,
        }
    }

    /// Returns the next sample.
    pub(crate) fn next(&mut self) -> io::Result<Option<ScriptSample>> {
        while let Some((number, line, whole)) = self.lines.next()? {
            if let Some(comment) = line.strip_prefix('#')
                && !is_named_so(&line, comment, self.times)
            {
                self.header.comment(comment);
                continue;
            }
            if line.trim().is_empty() {
                if let Some(sample) = self.current.take() {
                    return Ok(Some(sample.ended()));
                }
                continue;
            }
            if self.first_line == 0 {
                self.first_line = number;
            }
            // A thread's name may look like an address, but the line of a thread never begins with a tab.
            let is_frame = self.current.is_some() && line.starts_with('\t');
            let head = match is_frame || !whole {
                true => None,
                false => head(&line, self.times),
            };
            if let Some((head, times)) = head {
                self.times = Some(times);
                let next = ScriptSample::begin(&head);
                if let Some(sample) = self.current.replace(next) {
                    return Ok(Some(sample.ended()));
                }
                continue;
            }
            let is_indented = line.starts_with([' ', '\t']);
            let frame = Frame::parse(&line).filter(|frame| frame.file.is_some() || is_indented);
            match (&mut self.current, frame) {
                (Some(sample), Some(frame)) => sample.frame(&frame),
                _ => {
                    if self.odd.count == 0 {
                        self.odd.first = number;
                    }
                    self.odd.count = self.odd.count.saturating_add(1);
                }
            }
        }
        Ok(self.current.take().map(ScriptSample::ended))
    }
}

/// Parses the first line of a sample, with or without a time.
fn head(line: &str, times: Option<Times>) -> Option<(Head<'_>, Times)> {
    let timed = || Head::parse(line).map(|head| (head, Times::Present));
    let untimed = || Head::parse_without_time(line).map(|head| (head, Times::Absent));
    match times {
        Some(Times::Present) => timed(),
        // An apparent sample without a time may have been prose.
        Some(Times::Absent) | None => timed().or_else(untimed),
    }
}

/// Returns true if a line that begins like a comment is the first line of a sample, because the thread's name begins with `#`. Before the
/// samples, a line with a blank after the `#` is a header.
fn is_named_so(line: &str, comment: &str, times: Option<Times>) -> bool {
    let may_be_name = times.is_some() || !comment.starts_with([' ', '\t', '#']);
    match times {
        Some(Times::Absent) => may_be_name && head(line, times).is_some(),
        _ => may_be_name && Head::parse(line).is_some(),
    }
}

/// Returns true if a text may be from `perf script`: it has a sample with a time, or one without a time that has a frame.
pub(crate) fn is_script(text: &str) -> bool {
    let reader = Lines::new(text.as_bytes(), text.len());
    let mut samples = ScriptSamples::new(reader);
    let mut found = false;
    // Reading from memory does not fail.
    for _ in 0..16 {
        let Ok(Some(sample)) = samples.next() else {
            break;
        };
        found |= sample.time.is_some() || !sample.frames.is_empty();
    }
    found
}

impl ScriptSample {
    fn begin(head: &Head<'_>) -> Self {
        let mut sample = Self {
            comm: cut(head.comm, MAX_SHORT_NAME).to_owned(),
            pid: head.pid,
            tid: head.tid,
            cpu: head.cpu,
            time: head.time,
            period: head.period,
            event: head.event.map(|name| cut(name, MAX_SHORT_NAME).to_owned()),
            ip: None,
            frames: Vec::new(),
            is_cut: false,
            inlined: 0,
        };
        if let Some(frame) = Frame::parse(head.rest).filter(|frame| frame.file.is_some()) {
            sample.frame(&frame);
        }
        sample
    }

    fn frame(&mut self, frame: &Frame<'_>) {
        self.ip.get_or_insert(frame.address);
        if self.frames.len() >= MAX_FRAMES {
            self.is_cut = true;
            return;
        }
        let function = frame.function.to_owned();
        if frame.file == Some("inlined") {
            self.inlined = self.inlined.saturating_add(1);
            let file = String::new();
            self.frames.push(ScriptFrame { function, file });
            return;
        }
        let file = match frame.file {
            Some(file) if file.starts_with("[kernel.") => "[kernel]",
            Some(file) => file,
            None => "[unknown]",
        };
        self.place_inlined(file);
        let file = file.to_owned();
        self.frames.push(ScriptFrame { function, file });
    }

    /// Sets the file of the preceding inlined functions, which are inlined into a frame of this file.
    fn place_inlined(&mut self, file: &str) {
        for frame in self.frames.iter_mut().rev().take(self.inlined) {
            file.clone_into(&mut frame.file);
        }
        self.inlined = 0;
    }

    fn ended(mut self) -> Self {
        self.place_inlined("[unknown]");
        self
    }
}
