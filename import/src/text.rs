//! Imports stacks that have names, but no addresses.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::SystemTime;

use varid_model::{Address, FrameAddress, MonotonicNs, Period, Pid, Precision, Tid};
use varid_recording::{CpuMode, MappingRecord, NO_UID, Sample, SessionRecord, SessionWriter};

use crate::{
    error::Result,
    images::{self, ImageFile},
    input::Input,
    request::Span,
    summary::ImportSummary,
    text_names::{FunctionPlace, NamedFrame, TextNames, WINDOW},
    text_tasks::{Task, ThreadName},
};

/// A sample of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextSample {
    pub(crate) event: usize,
    pub(crate) time: u64,
    pub(crate) task: Task,
    pub(crate) cpu: u32,
    pub(crate) period: u64,
    /// The instruction pointer, if the text has it.
    pub(crate) ip: Option<u64>,
}

/// The facts about a text that are known after it has been read.
#[derive(Debug)]
pub(crate) struct TextSummary<'a> {
    /// The name of the format.
    pub(crate) format: &'static str,
    /// The program that wrote the text, if known.
    pub(crate) writer: Option<&'a str>,
    /// The recorded machine's architecture as in uname(2). Empty if unknown.
    pub(crate) arch: &'a str,
    /// The time span of the samples.
    pub(crate) span: Span,
    /// The end of the recording in wall-clock time.
    pub(crate) end: SystemTime,
    /// Notes of the session, as sentences.
    pub(crate) notes: Vec<String>,
}

/// Writes the session of a text.
#[derive(Debug)]
pub(crate) struct TextSession {
    pub(crate) writer: SessionWriter,
    pub(crate) excluded: BTreeMap<String, u64>,
    names: TextNames,
    files: Vec<ImageFile>,
    /// The images that each process has mapped.
    mapped: HashSet<(u32, usize)>,
    /// For each thread, the time since which it has its current name.
    threads: HashMap<Task, u64>,
    /// The frames of the current sample.
    frames: Vec<Address>,
    /// The images of these frames.
    used: Vec<usize>,
    /// Number of frames whose functions are beyond the limit of names.
    unnamed: u64,
}

impl TextSession {
    /// Makes a session with the names that are known of its text.
    pub(crate) fn new(writer: SessionWriter, names: TextNames) -> Self {
        Self {
            writer,
            excluded: BTreeMap::new(),
            names,
            files: Vec::new(),
            mapped: HashSet::new(),
            threads: HashMap::new(),
            frames: Vec::new(),
            used: Vec::new(),
            unnamed: 0,
        }
    }

    /// Adds a frame to the current stack, leaf first.
    pub(crate) fn push(&mut self, frame: NamedFrame<'_>) {
        let place = self.names.place(frame);
        self.push_at(place);
    }

    /// Adds a frame whose position is known to the current stack, leaf first.
    pub(crate) fn push_at(&mut self, place: FunctionPlace) {
        self.unnamed = self.unnamed.saturating_add(u64::from(place.is_of_others));
        self.used.push(place.image);
        // A caller's address is a return address.
        let address = match self.frames.is_empty() {
            true => place.address,
            false => FrameAddress::calling_at(place.address).recorded(),
        };
        self.frames.push(address);
    }

    /// Writes a sample with the current stack, then clears the stack.
    pub(crate) fn sample(&mut self, input: &Input, sample: &TextSample) -> Result<()> {
        let time = MonotonicNs::new(sample.time);
        let (pid, tid) = sample.task;
        for image in std::mem::take(&mut self.used) {
            self.map(input, pid, image, time)?;
        }
        let frames = std::mem::take(&mut self.frames);
        let leaf = frames.first().copied().unwrap_or_default();
        let written = Sample {
            event: sample.event,
            time,
            pid: Pid::new(pid),
            tid: Tid::new(tid),
            cpu: sample.cpu,
            period: Period::new(sample.period),
            original_ip: sample.ip.map_or(leaf, Address::new),
            interrupt: None,
            mode: CpuMode::User,
            uid: NO_UID,
            frame: None,
            precision: Precision::Exact,
            kernel: &[][..],
            user: &frames[..],
        };
        self.writer.write_sample(&written)?;
        self.frames = frames;
        self.clear();
        Ok(())
    }

    /// The images of the current stack.
    pub(crate) fn images(&self) -> &[usize] {
        &self.used
    }

    /// Writes the name of a thread, which it has since `time` at the latest. The next sample is one of this thread.
    pub(crate) fn name(&mut self, task: Task, name: ThreadName<'_>, time: u64) -> Result<()> {
        if self.threads.insert(task, name.since) == Some(name.since) {
            return Ok(());
        }
        let (pid, tid) = task;
        self.writer.write(&SessionRecord::Comm {
            time: MonotonicNs::new(time),
            pid: Pid::new(pid),
            tid: Tid::new(tid),
            exec: false,
            name: name.name.to_owned(),
        })?;
        Ok(())
    }

    /// Writes a mapping of an image, which the process has since this time at the latest.
    pub(crate) fn map(
        &mut self,
        input: &Input,
        pid: u32,
        image: usize,
        time: MonotonicNs,
    ) -> Result<()> {
        if !self.mapped.insert((pid, image)) {
            return Ok(());
        }
        while self.files.len() <= image {
            let file = images::file(&self.writer, input, self.files.len());
            self.files.push(file);
        }
        let Some(file) = self.files.get(image) else {
            return Ok(());
        };
        let pid = Pid::new(pid);
        let mapping = MappingRecord {
            time,
            pid,
            tid: pid.main_thread(),
            start: TextNames::start(image),
            len: WINDOW,
            pgoff: 0,
            kernel: false,
            mode: None,
            path: file.path.clone(),
            build_id: file.build_id.to_vec(),
        };
        self.writer.write(&SessionRecord::Mapping(mapping))?;
        Ok(())
    }

    /// Counts a sample that is not imported, and clears the current stack.
    pub(crate) fn exclude(&mut self, reason: &str) {
        let count = self.excluded.entry(reason.to_owned()).or_default();
        *count = count.saturating_add(1);
        self.clear();
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.used.clear();
    }

    /// Writes the images, so that the session can be finished. Returns their number.
    fn write_images(&mut self, arch: &str) -> Result<usize> {
        let names = std::mem::take(&mut self.names);
        let files = std::mem::take(&mut self.files);
        // An image without a file has no frames in samples.
        let mut count = 0usize;
        for (file, image) in files.iter().zip(names.into_images()) {
            images::write(&mut self.writer, file, image, arch)?;
            count = count.saturating_add(1);
        }
        Ok(count)
    }

    /// Ends the session. Returns its writer and the summary.
    pub(crate) fn finish(
        mut self,
        summary: TextSummary<'_>,
    ) -> Result<(SessionWriter, ImportSummary)> {
        let mut notes = summary.notes;
        let named_images = self.write_images(summary.arch)?;
        if self.unnamed > 0 {
            notes.push(format!(
                "the text has more names or files than are kept: {} frames are shown as [names beyond the limit]",
                self.unnamed
            ));
        }
        let imported = ImportSummary {
            format: summary.format,
            writer: summary.writer.map(str::to_owned),
            samples: self.writer.counts().samples,
            excluded: self.excluded.clone(),
            lost: 0,
            unwound: 0,
            named_images,
            notes: notes.clone(),
        };
        let manifest = self.writer.manifest_mut();
        manifest.notes = notes;
        manifest.counts.filtered = self.excluded;
        summary.span.write(manifest, summary.end);
        Ok((self.writer, imported))
    }
}
