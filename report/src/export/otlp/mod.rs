//! `ProfilesData` of OpenTelemetry's OTLP, which is still in development.
//!
//! Each process is a resource with one profile. The samples of a thread with the same stack are one OTLP sample, with
//! the attributes `thread.id`, `thread.name` and `varid.layer`, the layer of the leaf.

mod messages;

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
};

use prost::Message;
use varid_model::Pid;

use messages::{
    AnyValue, Function, KeyValue, KeyValueAndUnit, Line, Link, Location, Mapping, Profile,
    ProfilesData, ProfilesDictionary, Resource, ResourceProfiles, Sample, Scope, ScopeProfiles,
    Stack, Value, ValueType,
};

use super::{
    Content, ExportFormat, FormatMeasures, Need,
    interner::Interner,
    strings::Strings,
    walk::{Row, SourceFiles, Walk, plain},
};
use crate::{
    frames::{FrameId, ImageId, SymbolId},
    stacks::StackId,
    time_span::nanoseconds,
    unit::Unit,
};

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "otlp",
    aliases: &[],
    about: "OpenTelemetry's profiles, a schema in development",
    endings: &[],
    needs: &[Need::Lines],
    measures: FormatMeasures::One,
    content: Content::Binary,
    write: |input, out| Ok(write(&input.walk, out)?),
};

/// Writes the profiles and their dictionary, which are built in memory.
fn write(walk: &Walk, out: &mut dyn Write) -> io::Result<()> {
    let mut tables = Tables {
        walk,
        files: walk.files(),
        strings: Strings::new(),
        stacks: Interner::new(),
        frames: Interner::new(),
        symbols: Interner::new(),
        images: Interner::new(),
        attributes: HashMap::new(),
        attribute_table: vec![KeyValueAndUnit::default()],
    };
    // Each program that a process executes is a resource.
    let mut processes: BTreeMap<(Pid, &str), Vec<Sample>> = BTreeMap::new();
    for row in walk.rows() {
        let process = (row.task.pid, walk.process_name(row.task));
        let samples = processes.entry(process).or_default();
        samples.push(tables.sample(&row));
    }
    let sample_type = tables.sample_type();
    let start = walk.wall_start().saturating_mul(1_000_000_000);
    let duration = nanoseconds(walk.profile.recording.duration);
    let resource = |((pid, name), samples): ((Pid, &str), Vec<Sample>)| ResourceProfiles {
        resource: Some(Resource {
            attributes: vec![
                attribute("process.pid", Value::Number(i64::from(pid.get()))),
                attribute("process.title", Value::Text(plain(name).into_owned())),
            ],
        }),
        scope_profiles: vec![ScopeProfiles {
            scope: Some(Scope {
                name: "varid".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            profiles: vec![Profile {
                sample_type: Some(sample_type),
                samples,
                time_unix_nano: u64::try_from(start).unwrap_or_default(),
                duration_nano: duration,
            }],
        }],
    };
    let data = ProfilesData {
        resource_profiles: processes.into_iter().map(resource).collect(),
        dictionary: Some(tables.dictionary()),
    };
    out.write_all(&data.encode_to_vec())
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}

/// The tables that indices refer to. An index is one higher than that of the interner.
struct Tables<'w, 'p> {
    walk: &'w Walk<'p>,
    files: SourceFiles<'p>,
    strings: Strings,
    stacks: Interner<StackId>,
    frames: Interner<FrameId>,
    symbols: Interner<SymbolId>,
    images: Interner<ImageId>,
    attributes: HashMap<(&'static str, String), i32>,
    attribute_table: Vec<KeyValueAndUnit>,
}

impl Tables<'_, '_> {
    fn sample(&mut self, row: &Row) -> Sample {
        let thread = plain(&row.task.name).into_owned();
        let tid = i64::from(row.task.tid.get());
        let layer = self.walk.layer(row.stack).name().to_owned();
        let attribute_indices = vec![
            self.attribute("thread.id", tid.to_string(), Value::Number(tid)),
            self.attribute("thread.name", thread.clone(), Value::Text(thread)),
            self.attribute("varid.layer", layer.clone(), Value::Text(layer)),
        ];
        let value = i64::try_from(self.walk.value(row.weight));
        Sample {
            stack_index: row.stack.map_or(0, |stack| index(self.stacks.id(stack))),
            attribute_indices,
            values: vec![value.unwrap_or(i64::MAX)],
        }
    }

    fn attribute(&mut self, key: &'static str, text: String, value: Value) -> i32 {
        let next = i32::try_from(self.attribute_table.len()).unwrap_or(i32::MAX);
        let number = *self.attributes.entry((key, text)).or_insert(next);
        if number == next {
            let key = self.string(key);
            self.attribute_table.push(KeyValueAndUnit {
                key,
                value: Some(AnyValue { value: Some(value) }),
            });
        }
        number
    }

    fn sample_type(&mut self) -> ValueType {
        let walk = self.walk;
        let (kind, unit) = match walk.unit() {
            Unit::Nanoseconds => (walk.name(), "nanoseconds"),
            Unit::Bytes => (walk.name(), "bytes"),
            Unit::Events => (walk.name(), "count"),
            Unit::Samples => ("samples", "count"),
        };
        ValueType {
            kind: self.string(kind),
            unit: self.string(unit),
        }
    }

    fn dictionary(mut self) -> ProfilesDictionary {
        let mut dictionary = ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            link_table: vec![Link::default()],
            stack_table: vec![Stack::default()],
            attribute_table: std::mem::take(&mut self.attribute_table),
            string_table: Vec::new(),
        };
        for stack in self.stacks.keys() {
            let frames = self.walk.frames(Some(*stack));
            let locations = frames.map(|frame| index(self.frames.id(frame)));
            dictionary.stack_table.push(Stack {
                location_indices: locations.collect(),
            });
        }
        for frame in self.frames.keys() {
            let frame = self.walk.frame(*frame);
            let symbol = frame.map_or(SymbolId(u32::MAX), |frame| frame.symbol);
            let image = self.walk.symbol(symbol);
            let image = image.map(|symbol| index(self.images.id(symbol.image)));
            let line = frame.and_then(|frame| frame.line.as_ref());
            dictionary.location_table.push(Location {
                mapping_index: image.unwrap_or_default(),
                lines: vec![Line {
                    function_index: index(self.symbols.id(symbol)),
                    line: line.map_or(0, |line| i64::from(line.line)),
                }],
            });
        }
        for id in self.symbols.keys() {
            let symbol = self.walk.symbol(*id);
            let name = symbol.map_or("", |symbol| &symbol.name);
            let recorded = symbol.and_then(|symbol| symbol.recorded.as_deref());
            let file = self.files.of(*id);
            dictionary.function_table.push(Function {
                name: signed(self.strings.id(name)),
                system_name: signed(self.strings.id(recorded.unwrap_or(name))),
                filename: signed(self.strings.id(file.unwrap_or_default())),
            });
        }
        for id in self.images.keys() {
            let image = self.walk.profile.frames.image(*id);
            let name = image.map_or("", |image| &image.name);
            dictionary.mapping_table.push(Mapping {
                filename: signed(self.strings.id(name)),
            });
        }
        dictionary.string_table = self.strings.take_new();
        dictionary
    }

    fn string(&mut self, text: &str) -> i32 {
        signed(self.strings.id(text))
    }
}

fn index(number: u32) -> i32 {
    signed(number).saturating_add(1)
}

fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
