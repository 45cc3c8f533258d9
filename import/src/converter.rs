//! Converts a record of perf.data to one of a session.
//!
//! Addresses, mappings and times stay unchanged. Fields that only a session's samples have stay unknown.

use std::{
    collections::HashMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use varid_model::perf::{
    Malformed, PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_USER,
    PERF_RECORD_SAMPLE,
};
use varid_model::{Address, Mode, MonotonicNs, Period, Precision, Rate};
use varid_recording::{CpuMode, Host, MappingRecord, NO_UID, Sample, SessionRecord, SessionWriter};

use crate::{
    chain::{Callers, Chain},
    counters::Counters,
    dwarf::Unwinder,
    error::Result,
    input::Input,
    kernel::KernelNames,
    listed_files::ListedFiles,
    perfdata::{
        EventIndex, Features, RawRecord, SourceEvent, SourceMapping, SourceRecord, SourceSample,
    },
    request::{Imported, Span},
    source_facts::recorder_lost,
    source_names::SourceNames,
    summary::ImportSummary,
    tally::Tally,
};

/// The source's events, and their indices in the session.
pub(crate) struct Events<'a> {
    pub(crate) all: &'a [SourceEvent],
    pub(crate) index: &'a EventIndex,
    /// None if the event is never sampled.
    pub(crate) places: &'a [Option<usize>],
    /// Whether the samples of each event of the session have a tracepoint's fields.
    pub(crate) with_fields: &'a [bool],
    pub(crate) build_ids: &'a HashMap<String, Vec<u8>>,
}

impl Events<'_> {
    /// Returns true if an event of the session is a tracepoint whose fields perf shows.
    fn describe_fields(&self, event: usize) -> bool {
        self.with_fields.get(event).is_some_and(|has| *has)
    }

    /// The event of a sample with this body. None if it is not one of the session.
    #[inline]
    fn sampled(&self, body: &[u8]) -> Option<SampledEvent<'_>> {
        let place = self.index.event_of(body)?;
        Some(SampledEvent {
            place,
            event: self.all.get(place)?,
            index: (*self.places.get(place)?)?,
        })
    }

    /// The index in the session of the event that a count of a sample is of. `id` is the count's, `source` the event of the sample.
    #[inline]
    fn counted(&self, id: Option<u64>, source: &SampledEvent<'_>) -> Option<usize> {
        let place = match id {
            Some(id) => self.index.with_id(id)?,
            None => source.place,
        };
        *self.places.get(place)?
    }

    /// The time of a record.
    pub(crate) fn time(&self, record: &RawRecord) -> Option<u64> {
        if record.kind == PERF_RECORD_SAMPLE {
            let event = self.all.get(self.index.event_of(&record.body)?)?;
            return event.layout.sample_key(&record.body).ok()?.1;
        }
        let layout = self.index.layout();
        let parsed = SourceRecord::parse(layout, record.kind, record.misc, &record.body);
        parsed.ok().flatten()?.0
    }
}

/// The event of a sample.
struct SampledEvent<'a> {
    /// Its index in the source.
    place: usize,
    event: &'a SourceEvent,
    /// Its index in the session.
    index: usize,
}

/// Returns where the sample's instruction was executed, or None for a guest.
#[inline]
fn cpu_mode(misc: u16, ip: Option<u64>) -> Option<CpuMode> {
    match misc & PERF_RECORD_MISC_CPUMODE_MASK {
        PERF_RECORD_MISC_KERNEL => Some(CpuMode::Kernel),
        PERF_RECORD_MISC_USER => Some(CpuMode::User),
        // 0 is unknown, 3 is a hypervisor, 4 and 5 are a guest.
        4 | 5 => None,
        _ if ip.is_some_and(|ip| ip.leading_ones() >= 16) => Some(CpuMode::Kernel),
        _ => Some(CpuMode::User),
    }
}

/// Returns the session's form of a sample with the frames of `chain`.
#[inline]
fn session_sample<'c>(
    source: &SampledEvent<'_>,
    sample: &SourceSample<'_>,
    time: MonotonicNs,
    mode: CpuMode,
    chain: &'c Chain,
) -> Sample<&'c [Address]> {
    let task = sample.task.unwrap_or_default();
    let leaf = chain.kernel.first().or(chain.user.first());
    let own_period = match source.event.rate {
        Rate::Period(period) => period.max(1),
        Rate::Frequency(_) => 1,
    };
    Sample {
        event: source.index,
        time,
        pid: task.pid,
        tid: task.tid,
        cpu: sample.cpu.unwrap_or(0),
        period: Period::new(sample.period.unwrap_or(own_period)),
        original_ip: sample
            .ip
            .map_or(leaf.copied().unwrap_or_default(), Address::new),
        interrupt: None,
        mode,
        uid: NO_UID,
        frame: None,
        precision: Precision::Exact,
        kernel: &chain.kernel[..],
        user: &chain.user[..],
    }
}

/// Writes the session of a perf.data file.
pub(crate) struct Converter {
    writer: SessionWriter,
    names: SourceNames,
    kernel: KernelNames,
    unwinder: Unwinder,
    counters: Counters,
    callers: Callers,
    span: Span,
    tally: Tally,
    chain: Chain,
    files: ListedFiles,
}

impl Converter {
    /// Begins a session. `callers` is the recorder's form of callers. `trusted_before` is the end of the recording, if it was made on this
    /// machine.
    pub(crate) fn new(
        writer: SessionWriter,
        host: &Host,
        callers: Callers,
        trusted_before: Option<SystemTime>,
        notes: Vec<String>,
    ) -> Self {
        Self {
            writer,
            names: SourceNames::default(),
            kernel: KernelNames::default(),
            unwinder: Unwinder::new(host, trusted_before),
            counters: Counters::default(),
            callers,
            span: Span::default(),
            tally: Tally::new(notes),
            chain: Chain::default(),
            files: ListedFiles::new(),
        }
    }

    /// Adds the names in the source.
    pub(crate) fn take_names(
        &mut self,
        input: &Input,
        features: &Features,
        arch: &str,
    ) -> Result<()> {
        self.names = SourceNames::new(features, &mut self.tally.notes);
        self.names.write(&mut self.writer, input, arch)
    }

    /// Adds a note, which is a sentence.
    pub(crate) fn note(&mut self, note: String) {
        self.tally.notes.push(note);
    }

    /// Writes a record. No later record is older than it.
    pub(crate) fn record(&mut self, events: &Events<'_>, record: &RawRecord) -> Result<()> {
        if record.kind == PERF_RECORD_SAMPLE {
            return self.sample(events, record);
        }
        let layout = events.index.layout();
        match SourceRecord::parse(layout, record.kind, record.misc, &record.body) {
            Ok(Some((time, parsed))) => {
                self.other(events, time.unwrap_or(self.tally.latest()), parsed)
            }
            Ok(None) => Ok(()),
            Err(malformed) => {
                self.malformed(record, malformed);
                Ok(())
            }
        }
    }

    fn sample(&mut self, events: &Events<'_>, record: &RawRecord) -> Result<()> {
        let Some(source) = events.sampled(&record.body) else {
            self.tally.exclude("of-no-event");
            return Ok(());
        };
        let sample = match SourceSample::parse(source.event.layout, &record.body) {
            Ok(sample) => sample,
            Err(malformed) => {
                self.malformed(record, malformed);
                return Ok(());
            }
        };
        let Some(mode) = cpu_mode(record.misc, sample.ip) else {
            self.tally.exclude("guest");
            return Ok(());
        };
        self.fill_chain(source.event, &sample, mode);
        if self.chain.kernel.is_empty() && self.chain.user.is_empty() {
            self.tally.exclude("without-address");
            return Ok(());
        }
        self.kernel.sampled(&self.chain.kernel);
        if let Some(ip) = sample.ip.filter(|_| mode == CpuMode::Kernel) {
            self.kernel.sampled(&[Address::new(ip)]);
        }
        let time = sample.time.unwrap_or(self.tally.latest());
        self.tally.passed(time);
        self.span.add(time);
        let written = session_sample(&source, &sample, MonotonicNs::new(time), mode, &self.chain);
        let fields = sample.raw.filter(|_| events.describe_fields(source.index));
        let Some(counts) = sample.counts else {
            self.writer.write_recorded_sample(&written, fields)?;
            return Ok(());
        };
        // If a sample reads counts, it stands for the increase of each count.
        for count in counts.iter() {
            let Some(event) = events.counted(count.id, &source) else {
                self.tally.exclude("of-no-event");
                continue;
            };
            let thread = source.event.inherits.then_some(written.tid.get());
            let Some(period) = self.counters.since_last(count, thread) else {
                self.tally.exclude("of-too-many-counters");
                continue;
            };
            if period > 0 {
                let of_count = Sample {
                    event,
                    period: Period::new(period),
                    ..written
                };
                let fields = fields.filter(|_| events.describe_fields(event));
                self.writer.write_recorded_sample(&of_count, fields)?;
            }
        }
        Ok(())
    }

    /// Fills the chain with the frames of a sample: those of its callchain, and those in its copy of the stack.
    #[inline]
    fn fill_chain(&mut self, event: &SourceEvent, sample: &SourceSample<'_>, mode: CpuMode) {
        let in_kernel = mode == CpuMode::Kernel;
        self.chain.fill(sample, self.callers, in_kernel);
        let guests = &mut self.tally.guest_frames;
        *guests = guests.saturating_add(self.chain.others);
        if sample.stack.is_some_and(|stack| !stack.is_empty()) {
            // Such an event records no user callchain: at most, the callchain has the instruction.
            let leaf = sample.ip.map(Address::new).filter(|_| !in_kernel);
            let pid = sample.task.unwrap_or_default().pid;
            let (mask, user) = (event.layout.registers, &mut self.chain.user);
            self.unwinder.unwind(pid.get(), sample, mask, leaf, user);
        }
    }

    fn other(&mut self, events: &Events<'_>, time: u64, record: SourceRecord) -> Result<()> {
        self.tally.passed(time);
        let time = MonotonicNs::new(time);
        let record = match record {
            SourceRecord::Mapping(mapping) => return self.mapping(events, time, mapping),
            SourceRecord::Comm { task, exec, name } => {
                if exec {
                    self.unwinder.clear(task.pid.get());
                }
                SessionRecord::Comm {
                    time,
                    pid: task.pid,
                    tid: task.tid,
                    exec,
                    name: String::from_utf8_lossy(&name).into_owned(),
                }
            }
            SourceRecord::Fork { task, parent } => {
                self.unwinder.fork(parent.pid.get(), task.pid.get());
                SessionRecord::Fork {
                    time,
                    pid: task.pid,
                    ppid: parent.pid,
                    tid: task.tid,
                    ptid: parent.tid,
                }
            }
            SourceRecord::Exit { task, parent } => {
                self.unwinder.end(task.pid.get(), task.tid.get());
                SessionRecord::Exit {
                    time,
                    pid: task.pid,
                    ppid: parent.pid,
                    tid: task.tid,
                    ptid: parent.tid,
                }
            }
            SourceRecord::Lost(count) => {
                self.tally.lost(count);
                SessionRecord::Lost { time, count }
            }
            SourceRecord::Mixed(count) => SessionRecord::Lost { time, count },
            SourceRecord::LostInAll(count) => {
                self.tally.lost_in_all(count);
                return Ok(());
            }
            SourceRecord::FilteredOut(count) => {
                self.tally.filtered_out(count);
                return Ok(());
            }
            SourceRecord::Throttle => {
                let counts = &mut self.writer.manifest_mut().counts;
                counts.throttled = counts.throttled.saturating_add(1);
                return Ok(());
            }
        };
        Ok(self.writer.write(&record)?)
    }

    fn mapping(
        &mut self,
        events: &Events<'_>,
        time: MonotonicNs,
        mut mapping: SourceMapping,
    ) -> Result<()> {
        let path = String::from_utf8_lossy(&mapping.path).into_owned();
        if mapping.build_id.is_empty() {
            let kernel = mapping.kernel && path.starts_with("[kernel.kallsyms]");
            let key = if kernel { "[kernel.kallsyms]" } else { &path };
            if let Some(id) = events.build_ids.get(key) {
                mapping.build_id.clone_from(id);
            }
        }
        let recorded = mapping.recorded_file();
        let mut record = MappingRecord {
            time,
            pid: mapping.task.pid,
            tid: mapping.task.tid,
            start: Address::new(mapping.start),
            len: mapping.len,
            pgoff: mapping.pgoff,
            kernel: mapping.kernel,
            mode: mapping
                .access
                .map(|(prot, flags)| Mode::from_mmap(prot, flags)),
            path: PathBuf::from(OsStr::from_bytes(&mapping.path)),
            build_id: mapping.build_id.clone(),
        };
        if mapping.kernel {
            record.mode = None;
            self.names.map_kernel(&path, mapping.start);
            let symbol = path.strip_prefix("[kernel.kallsyms]");
            // That of simpleperf covers all of the kernel's addresses, so it has no information.
            if symbol.is_some_and(|symbol| !symbol.is_empty()) {
                self.kernel.text = Some((mapping.start, mapping.build_id));
            }
        } else {
            self.unwinder.map(&mapping);
            match self.names.place(&path, mapping.start, mapping.pgoff) {
                Some((file, pgoff)) => {
                    record.path.clone_from(&file.path);
                    record.build_id = file.build_id.to_vec();
                    record.pgoff = pgoff;
                }
                None => self.files.add_layer(&record.path, &path, &mapping.build_id),
            }
            if record.build_id.is_empty()
                && let Some(file) = recorded
            {
                self.files.add(file, self.writer.manifest_mut());
            }
        }
        Ok(self.writer.write(&SessionRecord::Mapping(record))?)
    }

    fn malformed(&mut self, record: &RawRecord, malformed: Malformed) {
        let counts = &mut self.writer.manifest_mut().counts;
        if counts.malformed == 0 {
            let (offset, kind) = (record.offset, record.kind);
            self.tally.notes.push(format!(
                "the record at offset {offset:#x} (type {kind}) is malformed, {malformed}; it and others like it are counted as malformed"
            ));
        }
        counts.malformed = counts.malformed.saturating_add(1);
        if record.kind == PERF_RECORD_SAMPLE {
            self.tally.exclude("malformed");
        }
    }

    /// Finishes the session after all records have been written. `format` is the name of the source's format.
    pub(crate) fn finish(
        mut self,
        input: Input,
        host: &Host,
        features: &Features,
        format: &'static str,
    ) -> Result<Imported> {
        let lost = recorder_lost(features).saturating_add(self.tally.unreported());
        if lost > 0 {
            let time = MonotonicNs::new(self.tally.latest());
            self.writer
                .write(&SessionRecord::Lost { time, count: lost })?;
        }
        self.kernel.functions = self.names.take_kernel();
        let kernel_note = self.kernel.write(&self.writer, host)?;
        self.tally.notes.extend(kernel_note);
        self.tally.note_counts();
        self.tally.notes.extend(self.unwinder.note());
        self.tally.notes.extend(self.files.note());
        let Tally {
            excluded, notes, ..
        } = self.tally;
        let writer = match features.is_simpleperf() {
            true => "simpleperf",
            false => "perf",
        };
        let summary = ImportSummary {
            format,
            writer: Some(writer.to_owned()),
            samples: self.writer.counts().samples,
            excluded: excluded.clone(),
            lost: self.writer.counts().lost,
            unwound: self.unwinder.unwound(),
            named_images: self.names.len(),
            notes: notes.clone(),
        };
        let manifest = self.writer.manifest_mut();
        manifest.images.extend(self.files.into_images());
        manifest.notes.extend(notes);
        manifest.counts.filtered = excluded;
        let end = features
            .meta_info
            .get("timestamp")
            .and_then(|seconds| seconds.parse().ok())
            .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        self.span.write(manifest, end.unwrap_or(input.modified));
        Ok(((self.writer, summary), input.path))
    }
}
