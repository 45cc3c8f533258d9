//! The description of an import.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use varid_model::{MonotonicNs, Stack};
use varid_recording::{
    Host, ImportedFrom, Manifest, SampleSource, SessionEvents, SessionTarget, SessionWriter,
    manifest::rfc3339,
};

use crate::{
    error::Result,
    input::Input,
    limits::{MAX_NAME, MAX_SHORT_NAME, cut},
    summary::ImportSummary,
};

/// `PERF_TYPE_RAW`: the session's perf.data needs an event whose periods no reader shows as times.
pub(crate) const RAW_EVENT: u32 = 4;

/// The source of an import, and its options.
#[derive(Debug)]
pub struct ImportRequest {
    /// The source.
    pub input: Input,
    /// The session's folder.
    pub output: PathBuf,
    /// Ignore names in the source: addresses are named from files, as in a session that varid recorded.
    pub without_names: bool,
    /// The first entry of a folded stack is a frame, not the thread's name.
    pub first_is_frame: bool,
}

/// A session that has been written, the summary of its source, and the source's path.
pub(crate) type Imported = ((SessionWriter, ImportSummary), PathBuf);

/// The description of a source in the manifest.
pub(crate) struct Origin<'a> {
    pub(crate) input: &'a Input,
    /// The name of its format.
    pub(crate) format: &'static str,
    pub(crate) writer: Option<String>,
    pub(crate) target: SessionTarget,
    pub(crate) host: Host,
    pub(crate) events: SessionEvents,
}

impl Origin<'_> {
    /// Begins a session in a folder.
    pub(crate) fn session(mut self, output: &Path) -> Result<SessionWriter> {
        let start = MonotonicNs::ZERO;
        self.cut_names();
        let mut manifest = Manifest::new(self.events, SampleSource::Import, self.target, start);
        manifest.host = self.host;
        manifest.stack = Stack::Full;
        manifest.imported = Some(ImportedFrom {
            path: self.input.path.to_string_lossy().into_owned(),
            format: self.format.to_owned(),
            writer: self.writer.unwrap_or_default(),
        });
        manifest.wall_start = rfc3339(self.input.modified);
        Ok(SessionWriter::create_to_replace(output, manifest)?)
    }

    /// Cuts the names of the source to the limits of a manifest.
    fn cut_names(&mut self) {
        let shorten = |name: &mut String, most| name.truncate(cut(name, most).len());
        shorten(&mut self.target.value, MAX_NAME);
        let SessionEvents { first, others } = &mut self.events;
        let events = std::iter::once(first).chain(others);
        let events = events.map(|event| &mut event.name);
        for name in events.chain([&mut self.host.kernel, &mut self.host.arch]) {
            shorten(name, MAX_SHORT_NAME);
        }
    }
}

/// The start and the duration of a recording, according to its samples and its end.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Span {
    first: Option<u64>,
    last: u64,
}

impl Span {
    /// Adds the time of a record.
    pub(crate) fn add(&mut self, time: u64) {
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = self.last.max(time);
    }

    /// Writes the span to a manifest. `end` is the end of the recording by the wall clock.
    pub(crate) fn write(self, manifest: &mut Manifest, end: SystemTime) {
        let start = self.first.unwrap_or(0);
        let duration = self.last.saturating_sub(start);
        manifest.start_time_ns = MonotonicNs::new(start);
        manifest.duration_ns = duration;
        let wall = end.checked_sub(Duration::from_nanos(duration));
        manifest.wall_start = rfc3339(wall.unwrap_or(UNIX_EPOCH));
    }
}
