//! The session that `varid estimate` writes of a program: its calling contexts, with what each instruction took.

use super::summary::End;
use anyhow::Context;
use object::read::elf::ElfFile32;
use object::{Object, ObjectSegment};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::iter::repeat;
use std::path::{Path, absolute};
use varid_machine::{ContextId, Cost, Counts, Timing};
use varid_model::{Address, CodeUnits, Mode, MonotonicNs, Pid, Tid};
use varid_processor::Processor;
use varid_recording::{
    ContextCount, ContextCounter, ContextMethod, ContextNode, ContextSite, ContextWriter,
    CounterId, EventDesc, Manifest, MappingRecord, MethodId, NodeId, RecordedFile, SampleSource,
    SessionRecord, SessionTarget, SessionWriter, TargetKind,
};
use varid_sampler::monotonic_ns;

/// The event of the session, of which there are no samples.
const EVENT: &str = "instructions-executed";
/// The number of the process: no process of this machine has executed the program.
const PID: Pid = Pid::new(1);
/// The most values that are written. A session has room for twice as many.
const MAX_VALUES: usize = 1 << 25;

/// The program that was executed.
#[derive(Debug, Clone, Copy)]
pub struct Program<'p> {
    /// Its path.
    pub path: &'p Path,
    /// The content of its file.
    pub file: &'p [u8],
    /// What it was called with, without its name.
    pub arguments: &'p [OsString],
}

/// What is counted in a session, in the order of its counters.
const COUNTERS: [&str; 8] = [
    "cycles",
    "instructions",
    "loads",
    "stores",
    "icache-misses",
    "dcache-misses",
    "mispredicted",
    "calls",
];
/// The counter of calls, which belongs to a context as a whole.
const CALLS: usize = 7;

/// The values of an instruction in a context, in the order of [`COUNTERS`].
type Values = [u64; 7];

/// Writes the session.
pub fn write(
    folder: &Path,
    program: &Program<'_>,
    processor: &Processor,
    counts: &Counts,
    timing: &Timing<'_>,
    end: End,
) -> anyhow::Result<()> {
    let failed = || format!("cannot write the session {}", folder.display());
    let start = monotonic_ns();
    let mut line = program.path.display().to_string();
    for argument in program.arguments {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    let manifest = Manifest::new(
        EventDesc::without_samples(EVENT),
        SampleSource::Agent,
        SessionTarget {
            kind: TargetKind::Command,
            value: line,
        },
        start,
    );
    let mut writer = SessionWriter::create(folder, manifest).with_context(failed)?;
    let records = records(program, start)?;
    for record in &records {
        writer.write(record).with_context(failed)?;
    }
    let counters = COUNTERS.map(|name| ContextCounter {
        name: name.to_owned(),
        unit: name.to_owned(),
    });
    let mut contexts = writer.create_contexts(&counters).with_context(failed)?;
    let vm = format!("varid estimate --target {}", processor.name);
    contexts.add_process(PID, &vm).with_context(failed)?;
    let time = MonotonicNs::new(start.get().saturating_add(1));
    let written = Nodes::default().write(&mut contexts, counts, timing, time);
    let incomplete = written.with_context(failed)?;
    let incomplete = match (incomplete, end) {
        (Some(why), _) => Some(why),
        (None, End::Limit(limit)) => Some(format!("it was ended after {limit} instructions")),
        (None, End::Exit(_)) => None,
    };
    let ended = contexts.end_process(PID, incomplete.as_deref());
    ended.with_context(failed)?;
    contexts.finish().with_context(failed)?;
    let manifest = writer.manifest_mut();
    manifest.notes.extend(notes(processor));
    let path = program.path.to_string_lossy().into_owned();
    if let (Ok(metadata), Ok(path)) = (fs::metadata(program.path), absolute(path)) {
        let path = path.to_string_lossy().into_owned();
        manifest.files.push(RecordedFile::of(path, &metadata));
    }
    writer.finish().with_context(failed)?;
    Ok(())
}

/// Says what is an estimate, and what was simulated.
fn notes(processor: &Processor) -> Vec<String> {
    let name = &processor.name;
    let parameters = processor.parameters.iter();
    let parameters: Vec<_> = parameters
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let with = match parameters.is_empty() {
        true => String::new(),
        false => format!(" with {}", parameters.join(", ")),
    };
    let mut notes = vec![format!(
        "cycles are those of {name}{with}: 'varid estimate' has computed them"
    )];
    for (cache, is_simulated) in [
        ("instruction cache", processor.icache.is_some()),
        ("data cache", processor.dcache.is_some()),
    ] {
        if !is_simulated {
            notes.push(format!("{name} has no {cache}"));
        }
    }
    notes
}

/// Returns the name and the mappings of the process.
fn records(program: &Program<'_>, time: MonotonicNs) -> anyhow::Result<Vec<SessionRecord>> {
    let path = absolute(program.path)?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    let mut records = vec![SessionRecord::Comm {
        time,
        pid: PID,
        tid: Tid::new(PID.get()),
        exec: false,
        name: name.to_string_lossy().into_owned(),
    }];
    let elf: ElfFile32<'_> = ElfFile32::parse(program.file)?;
    let build_id = elf.build_id().ok().flatten();
    // A record of a mapping has room for this many bytes.
    let build_id = build_id.filter(|id| id.len() <= 20).unwrap_or_default();
    for segment in elf.segments() {
        let (offset, len) = segment.file_range();
        if len == 0 {
            continue;
        }
        records.push(SessionRecord::Mapping(MappingRecord {
            time,
            pid: PID,
            tid: Tid::new(PID.get()),
            start: Address::new(segment.address()),
            len,
            pgoff: offset,
            kernel: false,
            mode: Some(Mode {
                read: true,
                write: false,
                execute: true,
                shared: false,
            }),
            path: path.clone(),
            build_id: build_id.to_vec(),
        }));
    }
    Ok(records)
}

/// The contexts in the session.
#[derive(Debug, Default)]
struct Nodes {
    methods: HashMap<u32, MethodId>,
    nodes: Vec<NodeId>,
}

impl Nodes {
    /// Writes all contexts. Returns why values are missing, if some are.
    fn write(
        mut self,
        contexts: &mut ContextWriter,
        counts: &Counts,
        timing: &Timing<'_>,
        time: MonotonicNs,
    ) -> varid_recording::Result<Option<String>> {
        let mut values = values(counts, timing);
        let mut left = MAX_VALUES;
        let mut left_out = 0_usize;
        for (index, context) in (0..).zip(counts.contexts.all()) {
            let site = match context.parent {
                Some(parent) => {
                    let caller = counts.contexts.function(parent);
                    let method = self.method(contexts, caller)?;
                    let pc = context.site.checked_sub(caller).map(CodeUnits::new);
                    match pc {
                        Some(pc) => Some(contexts.add_site(&ContextSite {
                            method,
                            pc,
                            opcode: 0,
                            target: None,
                        })?),
                        None => None,
                    }
                }
                None => None,
            };
            self.method(contexts, context.function)?;
            let parent = context.parent.and_then(|parent| {
                let known = self.nodes.get(parent.0 as usize);
                known.copied()
            });
            let node = contexts.add_node(&ContextNode {
                pid: PID,
                tid: None,
                parent,
                address: Address::new(context.function.into()),
                site,
                time,
            })?;
            self.nodes.push(node);
            let calls = (None, CALLS, context.calls);
            let places = values.remove(&ContextId(index)).unwrap_or_default();
            if places.len() > left {
                left_out = left_out.saturating_add(1);
                continue;
            }
            left = left.saturating_sub(places.len());
            let places = places.iter().flat_map(|(pc, values)| {
                // A place before the function's start counts for the function.
                let place = pc.checked_sub(context.function);
                let values = values.iter().enumerate();
                values.map(move |(counter, value)| (place, counter, *value))
            });
            for (place, counter, value) in places.chain([calls]) {
                if value > 0 {
                    let counter = CounterId(counter as u32);
                    let count = ContextCount {
                        counter,
                        place,
                        value,
                    };
                    contexts.set_count(node, &count)?;
                }
            }
        }
        Ok((left_out > 0).then(|| format!("{left_out} contexts have no room for their values")))
    }

    fn method(
        &mut self,
        contexts: &mut ContextWriter,
        function: u32,
    ) -> varid_recording::Result<MethodId> {
        if let Some(known) = self.methods.get(&function) {
            return Ok(*known);
        }
        let added = contexts.add_method(&ContextMethod {
            pid: PID,
            address: Address::new(function.into()),
            code: None,
        })?;
        self.methods.insert(function, added);
        Ok(added)
    }
}

/// Returns the values of each instruction, by context and address.
fn values(counts: &Counts, timing: &Timing<'_>) -> HashMap<ContextId, BTreeMap<u32, Values>> {
    let mut all: HashMap<ContextId, BTreeMap<u32, Values>> = HashMap::new();
    for (id, cell) in counts.numbered_cells() {
        let Some(block) = counts.block(cell.block) else {
            continue;
        };
        let in_context = all.entry(cell.context).or_default();
        let mut pc = block.start;
        // What a block took that was left early is in the costs of the whole one.
        let costs = timing.costs(id).iter().copied();
        let costs = costs.chain(repeat(Cost::default()));
        for (instruction, cost) in block.instructions.iter().zip(costs) {
            let if_it = |is_so: bool| if is_so { cell.executions } else { 0 };
            let new: Values = [
                cost.cycles.0,
                cell.executions,
                if_it(instruction.is_load()),
                if_it(instruction.is_store()),
                cost.icache_misses,
                cost.dcache_misses,
                cost.mispredicted,
            ];
            let known = in_context.entry(pc).or_default();
            for (known, new) in known.iter_mut().zip(new) {
                *known = known.saturating_add(new);
            }
            pc = pc.wrapping_add(instruction.length.bytes() as u32);
        }
    }
    all
}
