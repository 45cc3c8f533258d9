//! How does perf.data become a session?
//!
//! Its addresses, mappings and times stay what they are. Records are put in order of time; what a session's samples have and the source's
//! have not stays unknown.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    io::BufReader,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use varid_model::perf::{
    Malformed, PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_USER,
    PERF_RECORD_SAMPLE,
};
use varid_model::{Address, Layer, Mode, MonotonicNs, Period, Pid, Precision, Rate, Tid};
use varid_recording::{
    CpuMode, EventDesc, Host, ImageKind, MappingRecord, NO_UID, Sample, SessionImage,
    SessionRecord, SessionTarget, SessionWriter, TargetKind,
};

use crate::{
    chain::{Callers, Chain},
    dwarf::Unwinder,
    error::{Error, Result},
    format::SourceFormat,
    input::Input,
    kernel::KernelNames,
    layers,
    perfdata::{
        Damage, EventIndex, Features, PerfData, RawRecord, RecordReader, RecordSorter, SourceEvent,
        SourceMapping, SourceRecord, SourceSample,
    },
    request::{ImportRequest, Imported, Origin, Span},
    source_names::SourceNames,
    summary::ImportSummary,
};

/// `PERF_RECORD_FINISHED_ROUND`.
const FINISHED_ROUND: u32 = 68;
/// Where records of perf itself begin.
const USER_RECORDS: u32 = 64;

/// Imports perf.data of perf or simpleperf.
pub(crate) fn perf_data(request: ImportRequest) -> Result<Imported> {
    let input = request.input;
    let damaged = |damage: Damage| Error::Data {
        path: input.path.clone(),
        offset: damage.offset,
        reason: damage.reason,
    };
    let file = input
        .file
        .try_clone()
        .map_err(Error::io("read", &input.path))?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let source = PerfData::read(&mut file, input.len).map_err(damaged)?;
    let host = host(&source.features);
    let is_here = !host.machine.is_empty();
    let simpleperf = source.features.is_simpleperf();
    let writer_name = if simpleperf { "simpleperf" } else { "perf" };
    let (events, places) = session_events(&source.events);
    let origin = Origin {
        input: &input,
        format: SourceFormat::PerfData,
        writer: Some(writer_name.to_owned()),
        target: target(&source.features, &input),
        host: host.clone(),
        events,
    };
    let Some(manifest) = origin.manifest() else {
        return Err(Error::NoSamples {
            path: input.path,
            why: "it has no event that is sampled".to_owned(),
        });
    };
    let writer = SessionWriter::create(&request.output, manifest)?;
    let trusted_before = is_here.then_some(input.modified);
    let mut converter = Converter {
        writer,
        names: SourceNames::default(),
        kernel: KernelNames::default(),
        unwinder: Unwinder::new(&host, trusted_before),
        callers: match simpleperf {
            true => Callers::Calls,
            false => Callers::Returns,
        },
        span: Span::default(),
        excluded: BTreeMap::new(),
        notes: source.notes,
        chain: Chain::default(),
        late: 0,
        latest: 0,
        guest_frames: 0,
        layered: HashMap::new(),
    };
    if !request.without_names {
        let names = SourceNames::new(&source.features, &mut converter.notes);
        converter.names = names;
        let arch = &host.arch;
        converter.names.write(&mut converter.writer, &input, arch)?;
    }
    for event in source
        .events
        .iter()
        .filter(|event| event.rate == Rate::READ && !event.is_dummy())
    {
        converter.notes.push(format!(
            "{} is counted with another event's samples; its counts are not imported",
            event.name
        ));
    }
    let mut reader = RecordReader::new(file, source.records.clone());
    let mut sorter = RecordSorter::default();
    let events = Events {
        all: &source.events,
        index: EventIndex::new(&source.events),
        places: &places,
        build_ids: &source.features.build_ids,
    };
    loop {
        match reader.next() {
            Ok(Some(record)) if record.kind == FINISHED_ROUND => {
                // Compressed records come behind the end of their round.
                if !reader.is_compressed() {
                    sorter.end_round();
                }
            }
            Ok(Some(record)) if record.kind < USER_RECORDS => {
                let time = events.time(&record);
                sorter.add(time, record);
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(damage) => {
                let Damage { offset, reason } = damage;
                let note = format!(
                    "the source is damaged: offset {offset:#x}: {reason}; what follows is left out"
                );
                converter.notes.push(note);
                break;
            }
        }
        while let Some(record) = sorter.next_ready() {
            converter.record(&events, &record)?;
        }
    }
    sorter.end();
    while let Some(record) = sorter.next_ready() {
        converter.record(&events, &record)?;
    }
    converter.finish(input, &host, &source.features)
}

/// The source's events, and where they are in the session.
struct Events<'a> {
    all: &'a [SourceEvent],
    index: EventIndex,
    /// None: it is never sampled.
    places: &'a [Option<usize>],
    build_ids: &'a HashMap<String, Vec<u8>>,
}

impl Events<'_> {
    /// The time of a record.
    fn time(&self, record: &RawRecord) -> Option<u64> {
        if record.kind == PERF_RECORD_SAMPLE {
            let event = self.all.get(self.index.event_of(&record.body)?)?;
            return event.layout.sample_key(&record.body).ok()?.1;
        }
        let layout = self.index.layout();
        let parsed = SourceRecord::parse(layout, record.kind, record.misc, &record.body);
        parsed.ok().flatten()?.0
    }
}

/// Writes the session of a perf.data.
struct Converter {
    writer: SessionWriter,
    names: SourceNames,
    kernel: KernelNames,
    unwinder: Unwinder,
    callers: Callers,
    span: Span,
    excluded: BTreeMap<String, u64>,
    notes: Vec<String>,
    chain: Chain,
    /// Records that were older than one before.
    late: u64,
    latest: u64,
    guest_frames: u64,
    /// Files whose layer is not that of native code, by path.
    layered: HashMap<PathBuf, SessionImage>,
}

impl Converter {
    fn record(&mut self, events: &Events<'_>, record: &RawRecord) -> Result<()> {
        if record.kind == PERF_RECORD_SAMPLE {
            return self.sample(events, record);
        }
        let layout = events.index.layout();
        match SourceRecord::parse(layout, record.kind, record.misc, &record.body) {
            Ok(Some((time, parsed))) => self.other(events, time.unwrap_or(self.latest), parsed),
            Ok(None) => Ok(()),
            Err(malformed) => {
                self.malformed(record, malformed);
                Ok(())
            }
        }
    }

    fn sample(&mut self, events: &Events<'_>, record: &RawRecord) -> Result<()> {
        let Some(place) = events.index.event_of(&record.body) else {
            self.exclude("of-no-event");
            return Ok(());
        };
        let (Some(event), Some(Some(session_event))) =
            (events.all.get(place), events.places.get(place))
        else {
            self.exclude("of-no-event");
            return Ok(());
        };
        let sample = match SourceSample::parse(event.layout, &record.body) {
            Ok(sample) => sample,
            Err(malformed) => {
                self.malformed(record, malformed);
                return Ok(());
            }
        };
        let in_kernel = match record.misc & PERF_RECORD_MISC_CPUMODE_MASK {
            PERF_RECORD_MISC_KERNEL => true,
            PERF_RECORD_MISC_USER => false,
            // 0 where it is not known, 3 of a hypervisor; 4 and 5 of a guest.
            4 | 5 => {
                self.exclude("guest");
                return Ok(());
            }
            _ => sample.ip.is_some_and(|ip| ip.leading_ones() >= 16),
        };
        let (pid, tid) = sample.task.unwrap_or_default();
        self.chain.fill(&sample, self.callers, in_kernel);
        self.guest_frames = self.guest_frames.saturating_add(self.chain.others);
        if sample.stack.is_some_and(|stack| !stack.is_empty()) {
            // Such an event records no callchain of the user's: at most the instruction stands there.
            let leaf = sample.ip.map(Address::new).filter(|_| !in_kernel);
            let (mask, user) = (event.layout.registers, &mut self.chain.user);
            self.unwinder.unwind(pid, &sample, mask, leaf, user);
        }
        if self.chain.kernel.is_empty() && self.chain.user.is_empty() {
            self.exclude("without-address");
            return Ok(());
        }
        self.kernel.sampled(&self.chain.kernel);
        let time = sample.time.unwrap_or(self.latest);
        self.passed(time);
        self.span.add(time);
        let leaf = self.chain.kernel.first().or(self.chain.user.first());
        let own_period = match event.rate {
            Rate::Period(period) => period,
            Rate::Frequency(_) => 1,
        };
        let written = Sample {
            event: *session_event,
            time: MonotonicNs::new(time),
            pid: Pid::new(pid),
            tid: Tid::new(tid),
            cpu: sample.cpu.unwrap_or(0),
            period: Period::new(sample.period.unwrap_or(own_period)),
            original_ip: sample
                .ip
                .map_or(leaf.copied().unwrap_or_default(), Address::new),
            mode: match in_kernel {
                true => CpuMode::Kernel,
                false => CpuMode::User,
            },
            uid: NO_UID,
            frame: None,
            precision: Precision::Exact,
            kernel: &self.chain.kernel[..],
            user: &self.chain.user[..],
        };
        self.writer.write_sample(&written)?;
        Ok(())
    }

    fn other(&mut self, events: &Events<'_>, time: u64, record: SourceRecord) -> Result<()> {
        self.passed(time);
        let time = MonotonicNs::new(time);
        let ids = |(pid, tid): (u32, u32)| (Pid::new(pid), Tid::new(tid));
        let record = match record {
            SourceRecord::Mapping(mapping) => return self.mapping(events, time, mapping),
            SourceRecord::Comm { task, exec, name } => {
                let (pid, tid) = ids(task);
                if exec {
                    self.unwinder.clear(task.0);
                }
                SessionRecord::Comm {
                    time,
                    pid,
                    tid,
                    exec,
                    name: String::from_utf8_lossy(&name).into_owned(),
                }
            }
            SourceRecord::Fork { task, parent } => {
                let ((pid, tid), (ppid, ptid)) = (ids(task), ids(parent));
                self.unwinder.fork(parent.0, task.0);
                SessionRecord::Fork {
                    time,
                    pid,
                    ppid,
                    tid,
                    ptid,
                }
            }
            SourceRecord::Exit { task, parent } => {
                let ((pid, tid), (ppid, ptid)) = (ids(task), ids(parent));
                SessionRecord::Exit {
                    time,
                    pid,
                    ppid,
                    tid,
                    ptid,
                }
            }
            SourceRecord::Lost(count) => SessionRecord::Lost { time, count },
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
        let mut record = MappingRecord {
            time,
            pid: Pid::new(mapping.pid),
            tid: Tid::new(mapping.tid),
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
            // simpleperf's is of all of the kernel's addresses, which tells nothing.
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
                None => self.layer(&record.path, &path, &mapping.build_id),
            }
        }
        Ok(self.writer.write(&SessionRecord::Mapping(record))?)
    }

    /// Notes that a file is of another layer than native code.
    fn layer(&mut self, path: &Path, shown: &str, build_id: &[u8]) {
        let layer = layers::of_image(shown);
        if layer != Layer::Native && !self.layered.contains_key(path) {
            let image = SessionImage {
                path: shown.to_owned(),
                build_id: varid_symbolizer::hex(build_id),
                kind: ImageKind::Elf,
                layer,
                substitute: None,
                location: None,
            };
            self.layered.insert(path.to_owned(), image);
        }
    }

    /// A record of this time is written.
    fn passed(&mut self, time: u64) {
        if time < self.latest {
            self.late = self.late.saturating_add(1);
        }
        self.latest = self.latest.max(time);
    }

    fn exclude(&mut self, reason: &str) {
        let count = self.excluded.entry(reason.to_owned()).or_default();
        *count = count.saturating_add(1);
    }

    fn malformed(&mut self, record: &RawRecord, malformed: Malformed) {
        let counts = &mut self.writer.manifest_mut().counts;
        if counts.malformed == 0 {
            let (offset, kind) = (record.offset, record.kind);
            self.notes.push(format!(
                "the record at offset {offset:#x} (type {kind}) is malformed, {malformed}; it and others like it are counted as malformed"
            ));
        }
        counts.malformed = counts.malformed.saturating_add(1);
        if record.kind == PERF_RECORD_SAMPLE {
            self.exclude("malformed");
        }
    }

    fn finish(mut self, input: Input, host: &Host, features: &Features) -> Result<Imported> {
        let lost = recorder_lost(features);
        if lost > 0 {
            let time = MonotonicNs::new(self.latest);
            self.writer
                .write(&SessionRecord::Lost { time, count: lost })?;
        }
        self.kernel.functions = self.names.take_kernel();
        let kernel_note = self.kernel.write(&self.writer, host)?;
        self.notes.extend(kernel_note);
        if self.late > 0 {
            self.notes
                .push(format!("{} records were out of order of time", self.late));
        }
        if self.guest_frames > 0 {
            self.notes.push(format!(
                "{} frames of virtual machines are left out of callchains",
                self.guest_frames
            ));
        }
        let named_images = self.names.len();
        let summary = ImportSummary {
            format: SourceFormat::PerfData,
            writer: Some(
                if features.is_simpleperf() {
                    "simpleperf"
                } else {
                    "perf"
                }
                .to_owned(),
            ),
            samples: self.writer.counts().samples,
            excluded: self.excluded.clone(),
            lost: self.writer.counts().lost,
            unwound: self.unwinder.unwound(),
            named_images,
            notes: self.notes.clone(),
        };
        let manifest = self.writer.manifest_mut();
        let mut layered: Vec<_> = self.layered.into_values().collect();
        layered.sort_by(|a, b| a.path.cmp(&b.path));
        manifest.images.extend(layered);
        manifest.notes.extend(self.notes);
        manifest.counts.filtered = self.excluded;
        let end = features
            .meta_info
            .get("timestamp")
            .and_then(|seconds| seconds.parse().ok())
            .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        self.span.write(manifest, end.unwrap_or(input.modified));
        Ok(((self.writer, summary), input.path))
    }
}

/// The events of the session, and which of them each event of the source is.
fn session_events(all: &[SourceEvent]) -> (Vec<EventDesc>, Vec<Option<usize>>) {
    let mut events = Vec::new();
    let mut places = Vec::new();
    for event in all {
        if event.is_dummy() || event.rate == Rate::READ {
            places.push(None);
            continue;
        }
        places.push(Some(events.len()));
        let (name, rate) = (event.name.clone(), event.rate);
        events.push(EventDesc::new(name, rate, event.kind, event.config));
    }
    (events, places)
}

/// The machine of a recording. It is this one if its name, kernel and architecture are.
fn host(features: &Features) -> Host {
    let here = Host::this_machine();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_here = !features.host_name.is_empty()
        && features.host_name == name.trim_end()
        && features.kernel == here.kernel
        && features.arch == here.arch;
    Host {
        kernel: features.kernel.clone(),
        arch: features.arch.clone(),
        machine: match is_here {
            true => here.machine,
            false => String::new(),
        },
        cpus: features.cpus,
    }
}

/// What was recorded, as far as the recorder's command line tells.
fn target(features: &Features, input: &Input) -> SessionTarget {
    let package = features.meta_info.get("app_package_name");
    if let Some(package) = package.filter(|package| !package.is_empty()) {
        return SessionTarget {
            kind: TargetKind::App,
            value: package.clone(),
        };
    }
    let value = match features.command[..] {
        [] => input.path.to_string_lossy().into_owned(),
        _ => features.command.join(" "),
    };
    SessionTarget {
        kind: TargetKind::Command,
        value,
    }
}

/// Samples that simpleperf itself has lost; what the kernel lost has records.
fn recorder_lost(features: &Features) -> u64 {
    let stat = features.meta_info.get("record_stat");
    let fields = stat.map_or("", String::as_str).split(',');
    let lost = fields.filter_map(|field| field.strip_prefix("userspace_lost_samples="));
    lost.filter_map(|count| count.parse::<u64>().ok())
        .fold(0, u64::saturating_add)
}
