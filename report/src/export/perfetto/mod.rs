//! Perfetto traces of perf samples with their call stacks: a flame graph for each time span.
//!
//! Each sample counts as one, regardless of its period, because Perfetto has no weights. Layers are the kinds of frames.

mod messages;

use std::{
    collections::HashSet,
    io::{self, Write},
};

use varid_model::{Layer, Rate};

use messages::{
    Callstack, Frame, InternedData, InternedString, Mapping, PerfSample, PerfSampleDefaults,
    Process, ProcessTree, Thread, Timebase, Trace, TracePacket, TracePacketDefaults,
};

use super::{
    Content, ExportFormat, FormatMeasures, Need,
    interner::Interner,
    message_writer::MessageWriter,
    walk::{Walk, plain},
};
use crate::{
    error::Result,
    frames::{FrameId, ImageId, SymbolId},
    samples::ProfileSample,
    stacks::StackId,
};

/// All packets belong to one writer.
const SEQUENCE: u32 = 1;
/// Packet flags: the first drops the interned data, the second uses it.
const CLEARED: u32 = 1;
const NEEDS_INTERNED: u32 = 2;
/// Values of `cpu_mode`.
const KERNEL: i32 = 1;
const USER: i32 = 2;

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "perfetto",
    aliases: &[],
    about: "Perfetto's protobuf: ui.perfetto.dev",
    endings: &[".perfetto-trace", ".pftrace"],
    needs: &[Need::Samples, Need::Lines],
    measures: FormatMeasures::Samples,
    content: Content::Binary,
    write: |input, out| write(&input.walk, out),
};

/// Writes the trace in order of time.
fn write(walk: &Walk, out: &mut dyn Write) -> Result<()> {
    let mut writer = Writer {
        walk,
        stacks: HashSet::new(),
        frames: HashSet::new(),
        symbols: HashSet::new(),
        images: HashSet::new(),
        sources: Interner::new(),
        out: MessageWriter::new(out),
    };
    writer.head()?;
    for loss in &walk.profile.recording.losses {
        writer.packet(TracePacket {
            timestamp: Some(loss.time.get()),
            perf_sample: Some(PerfSample {
                kernel_records_lost: Some(loss.count),
                ..PerfSample::default()
            }),
            ..TracePacket::default()
        })?;
    }
    for sample in walk.samples()? {
        writer.sample(&sample)?;
    }
    writer.out.finish()?;
    Ok(())
}

/// The data that has been interned so far.
struct Writer<'w, 'p> {
    walk: &'w Walk<'p>,
    stacks: HashSet<StackId>,
    frames: HashSet<FrameId>,
    symbols: HashSet<SymbolId>,
    images: HashSet<ImageId>,
    sources: Interner<&'p str>,
    out: MessageWriter<&'w mut dyn Write>,
}

impl Writer<'_, '_> {
    fn head(&mut self) -> Result<()> {
        let description = self.walk.description;
        let (period, frequency) = match description.rate {
            Rate::Frequency(frequency) => (None, Some(frequency)),
            Rate::Period(period) => (Some(period), None),
        };
        let timebase = Timebase {
            period,
            frequency,
            name: plain(&description.name).into_owned(),
        };
        let mut tree = ProcessTree::default();
        let mut processes = HashSet::new();
        for thread in self.walk.threads()? {
            let (pid, tid) = (signed(thread.pid.get()), signed(thread.tid.get()));
            if processes.insert(pid) {
                tree.processes.push(Process {
                    pid,
                    cmdline: vec![plain(thread.process).into_owned()],
                });
            }
            tree.threads.push(Thread {
                tid,
                name: plain(thread.name).into_owned(),
                tgid: pid,
            });
        }
        self.packet(TracePacket {
            sequence_flags: CLEARED,
            trace_packet_defaults: Some(TracePacketDefaults {
                perf_sample_defaults: Some(PerfSampleDefaults {
                    timebase: Some(timebase),
                }),
            }),
            ..TracePacket::default()
        })?;
        self.packet(TracePacket {
            process_tree: Some(tree),
            ..TracePacket::default()
        })?;
        Ok(())
    }

    fn sample(&mut self, sample: &ProfileSample) -> io::Result<()> {
        let Some(task) = self.walk.profile.tasks.task(sample.task) else {
            return Ok(());
        };
        let interned_data = sample.stack.and_then(|stack| self.interned(stack));
        let is_kernel = self.walk.layer(sample.stack) == Layer::Kernel;
        self.packet(TracePacket {
            timestamp: Some(sample.time.get()),
            interned_data,
            perf_sample: Some(PerfSample {
                pid: task.pid.get(),
                tid: task.tid.get(),
                callstack_iid: sample.stack.map_or(0, stack_iid),
                cpu_mode: if is_kernel { KERNEL } else { USER },
                kernel_records_lost: None,
            }),
            ..TracePacket::default()
        })
    }

    /// Returns the entries for a stack that have not been written. None if all are known.
    fn interned(&mut self, stack: StackId) -> Option<InternedData> {
        if !self.stacks.insert(stack) {
            return None;
        }
        let mut data = InternedData::default();
        let mut frame_ids = Vec::new();
        for frame in self.walk.frames(Some(stack)) {
            frame_ids.push(iid(frame.0));
            self.frame(frame, &mut data);
        }
        frame_ids.reverse();
        data.callstacks.push(Callstack {
            iid: stack_iid(stack),
            frame_ids,
        });
        Some(data)
    }

    fn frame(&mut self, id: FrameId, data: &mut InternedData) {
        let walk = self.walk;
        if !self.frames.insert(id) {
            return;
        }
        let Some((frame, symbol)) = walk.frame(id).zip(walk.symbol_of(id)) else {
            return;
        };
        if self.images.insert(symbol.image) {
            let image = walk.image_of(symbol);
            let iid = iid(symbol.image.0);
            let name = image.map_or("", |image| image.name.as_str());
            data.mapping_paths.push(interned(iid, name));
            data.mappings.push(Mapping {
                iid,
                path_string_ids: vec![iid],
            });
        }
        if self.symbols.insert(frame.symbol) {
            let name = interned(iid(frame.symbol.0), &symbol.name);
            data.function_names.push(name);
        }
        let source_path_iid = frame.line.as_ref().map_or(0, |line| {
            let new = self.sources.get(line.file.as_ref()).is_none();
            let source = iid(self.sources.id(line.file.as_ref()));
            if new {
                data.source_paths.push(interned(source, &line.file));
            }
            source
        });
        data.frames.push(Frame {
            iid: iid(id.0),
            function_name_id: iid(frame.symbol.0),
            mapping_id: iid(symbol.image.0),
            rel_pc: Some(symbol.start),
            source_path_iid,
            line_number: frame.line.as_ref().map_or(0, |line| line.line),
            kind: symbol.layer.name().to_owned(),
        });
    }

    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let trace = Trace {
            packet: vec![TracePacket {
                trusted_packet_sequence_id: SEQUENCE,
                sequence_flags: packet.sequence_flags | NEEDS_INTERNED,
                ..packet
            }],
        };
        self.out.part(&trace)
    }
}

fn interned(iid: u64, text: &str) -> InternedString {
    InternedString {
        iid,
        text: plain(text).as_bytes().to_vec(),
    }
}

/// Interning ids start at 1: 0 stands for none.
fn iid(number: u32) -> u64 {
    u64::from(number).saturating_add(1)
}

fn stack_iid(stack: StackId) -> u64 {
    iid(stack.number())
}

fn signed(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}
