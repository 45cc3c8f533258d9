//! The processed profile format of the Firefox Profiler, in which each thread has its own tables.
//!
//! Categories are layers, and markers are losses. The crate fxprof-processed-profile is not used, because it does not
//! write source lines for known names, or weights other than small integers. The format version is that of its version
//! 0.8.1.

mod shape;

use std::io::Write;

use serde_json::json;
use varid_model::Layer;

use shape::{
    FirefoxThread, FrameTable, FuncTable, Lifetime, ResourceTable, Samples, StackTable,
    ThreadTables,
};

use super::{
    Content, ExportFormat, FormatMeasures, Need,
    interner::Interner,
    json::write as to_writer,
    palette::colours,
    strings::Strings,
    walk::{SourceFiles, Thread, Walk},
};
use crate::{
    error::Result,
    frames::{FrameId, ImageId, SymbolId},
    stacks::StackId,
    unit::Unit,
};

/// The version of the processed format: `meta.preprocessedProfileVersion`.
const VERSION: u32 = 55;
/// Nanoseconds in a millisecond, the unit of times.
const MILLISECOND: f64 = 1e6;
/// The resource type for a library.
const LIBRARY: u32 = 1;

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "firefox",
    aliases: &[],
    about: "The Firefox Profiler's JSON: profiler.firefox.com",
    endings: &[],
    needs: &[Need::Samples, Need::Lines],
    measures: FormatMeasures::Samples,
    content: Content::Text,
    write: |input, out| write(&input.walk, out),
};

/// Writes the profile, one thread after the other.
fn write(walk: &Walk, out: &mut dyn Write) -> Result<()> {
    write!(out, r#"{{"meta":"#)?;
    to_writer(out, &meta(walk))?;
    write!(
        out,
        r#","libs":[],"pages":[],"profilerOverhead":[],"counters":[],"threads":["#
    )?;
    let files = walk.files();
    for (number, thread) in walk.threads()?.into_iter().enumerate() {
        if number > 0 {
            writeln!(out, ",")?;
        }
        to_writer(out, &FirefoxThread::new(walk, &thread, &files, number == 0))?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

fn meta(walk: &Walk) -> serde_json::Value {
    let categories: Vec<_> = std::iter::once(("other", "grey"))
        .chain(Layer::ALL.map(|layer| (layer.name(), colours(layer).firefox)))
        .map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}))
        .collect();
    json!({
        "categories": categories,
        "debug": false,
        "extensions": {"length": 0, "baseURL": [], "id": [], "name": []},
        "interval": milliseconds(walk.interval()),
        "preprocessedProfileVersion": VERSION,
        "processType": 0,
        "product": walk.title(),
        "importedFrom": "varid",
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "startTime": walk.wall_start().saturating_mul(1_000),
        "symbolicated": true,
        "pausedRanges": [],
        "version": 24,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "markerSchema": [{
            "name": "Loss",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "tooltipLabel": "{marker.data.records} lost records",
            "tableLabel": "{marker.data.records} lost records",
            "fields": [{"key": "records", "label": "Records", "format": "integer"}],
        }],
    })
}

/// Returns the index of a category. 0 is `other`.
const fn category(layer: Layer) -> usize {
    layer.place().saturating_add(1)
}

#[allow(clippy::cast_precision_loss)] // a day has 47 bits of nanoseconds
fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / MILLISECOND
}

impl FirefoxThread {
    /// Makes a thread. The first one also has the markers.
    fn new(walk: &Walk, thread: &Thread, files: &SourceFiles, is_first: bool) -> Self {
        let mut tables = Tables {
            walk,
            strings: Strings::new(),
            stacks: Interner::new(),
            frames: Interner::new(),
            symbols: Interner::new(),
            files,
            images: Interner::new(),
        };
        let samples = tables.samples(thread);
        let markers = tables.markers(is_first);
        let stack_table = tables.stack_table();
        let frame_table = tables.frame_table();
        let func_table = tables.func_table();
        let resource_table = tables.resource_table();
        let name = tables.strings.id(thread.name);
        let process = tables.strings.id(thread.process);
        let string_array = tables.strings.take_new();
        let text = |id: u32| {
            let place = usize::try_from(id).unwrap_or(usize::MAX);
            string_array.get(place).cloned().unwrap_or_default()
        };
        Self {
            name: text(name),
            is_main_thread: thread.tid.is_main_thread_of(thread.pid),
            process_type: "default",
            process_name: text(process),
            lifetime: Lifetime::default(),
            show_markers_in_timeline: is_first,
            pid: thread.pid.to_string(),
            tid: thread.tid.get(),
            tables: ThreadTables {
                samples,
                markers,
                stack_table,
                frame_table,
                func_table,
                resource_table,
                native_symbols: json!({
                    "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [],
                }),
                string_array,
            },
        }
    }
}

/// The tables of a thread.
struct Tables<'w, 'p> {
    walk: &'w Walk<'p>,
    strings: Strings,
    stacks: Interner<StackId>,
    frames: Interner<FrameId>,
    symbols: Interner<SymbolId>,
    files: &'w SourceFiles<'p>,
    images: Interner<ImageId>,
}

impl Tables<'_, '_> {
    fn samples(&mut self, thread: &Thread) -> Samples {
        let of_time = self.walk.unit() == Unit::Nanoseconds;
        let mut samples = Samples {
            length: thread.samples.len(),
            weight_type: if of_time { "tracing-ms" } else { "samples" },
            ..Samples::default()
        };
        let mut before = 0;
        for sample in &thread.samples {
            let time = self.walk.since_start(sample.time);
            samples
                .time_deltas
                .push(milliseconds(time.saturating_sub(before)));
            before = time;
            let value = self.walk.sample_value(sample);
            #[allow(clippy::cast_precision_loss)] // 53 bits are enough of an event
            let count = value as f64;
            samples
                .weight
                .push(if of_time { milliseconds(value) } else { count });
            if of_time {
                samples.cpu_delta.push(value);
            }
            samples
                .stack
                .push(sample.stack.map(|stack| self.stack(stack)));
        }
        samples
    }

    /// Returns the index of a stack. Callers have smaller indices.
    fn stack(&mut self, leaf: StackId) -> u32 {
        if let Some(id) = self.stacks.get(leaf) {
            return id;
        }
        let stacks = &self.walk.profile.stacks;
        let new = stacks.walk(leaf);
        let new: Vec<_> = new
            .take_while(|stack| self.stacks.get(*stack).is_none())
            .collect();
        for stack in new.into_iter().rev() {
            self.stacks.id(stack);
        }
        self.stacks.id(leaf)
    }

    fn markers(&mut self, is_first: bool) -> serde_json::Value {
        let losses: &[_] = if is_first {
            &self.walk.profile.recording.losses
        } else {
            &[]
        };
        let name = self.strings.id("lost records");
        let of_each = |value: u32| vec![value; losses.len()];
        let times = losses.iter().map(|loss| self.walk.since_start(loss.time));
        let data = losses
            .iter()
            .map(|loss| json!({"type": "Loss", "records": loss.count}));
        json!({
            "length": losses.len(),
            "category": of_each(0),
            "data": data.collect::<Vec<_>>(),
            "name": of_each(name),
            "phase": of_each(0),
            "startTime": times.map(milliseconds).collect::<Vec<_>>(),
            "endTime": vec![(); losses.len()],
        })
    }

    fn stack_table(&mut self) -> StackTable {
        let stacks = &self.walk.profile.stacks;
        let keys = self.stacks.keys();
        let parent = |stack: &StackId| self.stacks.get(stacks.parent(*stack)?);
        StackTable {
            length: keys.len(),
            prefix: keys.iter().map(parent).collect(),
            frame: keys
                .iter()
                .filter_map(|stack| Some(self.frames.id(stacks.frame(*stack)?)))
                .collect(),
        }
    }

    fn frame_table(&mut self) -> FrameTable {
        let length = self.frames.keys().len();
        let mut table = FrameTable {
            length,
            address: vec![-1; length],
            inline_depth: vec![0; length],
            subcategory: vec![0; length],
            native_symbol: vec![(); length],
            inner_window: vec![0; length],
            column: vec![(); length],
            ..FrameTable::default()
        };
        for id in self.frames.keys() {
            let Some(frame) = self.walk.frame(*id) else {
                continue;
            };
            let symbol = self.walk.symbol(frame.symbol);
            table
                .category
                .push(symbol.map_or(0, |symbol| category(symbol.layer)));
            table.line.push(frame.line.as_ref().map(|line| line.line));
            table.func.push(self.symbols.id(frame.symbol));
        }
        table
    }

    fn func_table(&mut self) -> FuncTable {
        let length = self.symbols.keys().len();
        let mut table = FuncTable {
            length,
            is_js: vec![false; length],
            relevant_for_js: vec![false; length],
            line_number: vec![(); length],
            column_number: vec![(); length],
            ..FuncTable::default()
        };
        for id in self.symbols.keys() {
            let symbol = self.walk.symbol(*id);
            let name = symbol.map_or("", |symbol| symbol.name.as_str());
            table.name.push(self.strings.id(name));
            let file = self.files.of(*id);
            table.file_name.push(file.map(|file| self.strings.id(file)));
            let image = symbol.map_or(ImageId(u32::MAX), |symbol| symbol.image);
            table.resource.push(self.images.id(image));
        }
        table
    }

    fn resource_table(&mut self) -> ResourceTable {
        let length = self.images.keys().len();
        let images = self.images.keys().iter();
        let names = images.map(|id| {
            let image = self.walk.profile.frames.image(*id);
            self.strings
                .id(image.map_or("", |image| image.name.as_str()))
        });
        ResourceTable {
            length,
            name: names.collect(),
            lib: vec![(); length],
            host: vec![(); length],
            kind: vec![LIBRARY; length],
        }
    }
}
