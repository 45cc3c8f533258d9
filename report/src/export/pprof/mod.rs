//! The protobuf format of pprof, compressed by gzip.
//!
//! The samples of a thread with the same stack are one pprof sample. Its labels are `layer` (of the leaf), `thread`,
//! `process`, `tid` and `pid`.

mod messages;

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};

use messages::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

use super::{
    Content, ExportFormat, FormatMeasures, Need,
    message_writer::MessageWriter,
    strings::Strings,
    walk::{Row, SourceFiles, Walk},
};
use crate::{
    fast_hash::FastSet,
    frames::{FrameId, ImageId, SymbolId},
    measures::Measure,
    weights::ProfileCounter,
};

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "pprof",
    aliases: &[],
    about: "pprof's protobuf, compressed: go tool pprof",
    endings: &[".pb.gz", ".pprof"],
    needs: &[Need::Lines],
    measures: FormatMeasures::Several,
    content: Content::Binary,
    write: |input, out| Ok(write(&input.walk, out)?),
};

/// Writes the profile with a value of each measure for each stack. By default, these are samples and the event's periods.
fn write(walk: &Walk, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer {
        walk,
        files: walk.files(),
        strings: Strings::new(),
        symbols: FastSet::default(),
        frames: FastSet::default(),
        images: FastSet::default(),
        out: MessageWriter::new(GzEncoder::new(out, Compression::fast())),
    };
    writer.head()?;
    for row in walk.rows() {
        writer.row(row)?;
    }
    writer.out.finish()?.finish()?;
    Ok(())
}

/// The state of the output: a table entry is written before the first sample that refers to it.
struct Writer<'w, 'p> {
    walk: &'w Walk<'p>,
    files: SourceFiles<'p>,
    strings: Strings,
    symbols: FastSet<SymbolId>,
    frames: FastSet<FrameId>,
    images: FastSet<ImageId>,
    out: MessageWriter<GzEncoder<&'w mut dyn Write>>,
}

impl Writer<'_, '_> {
    fn head(&mut self) -> io::Result<()> {
        let walk = self.walk;
        let manifest = &walk.profile.recording.manifest;
        let of = |measure: &Measure| match measure.counter {
            // In pprof, the value of periods has the event's name.
            ProfileCounter::Period(_) if walk.measures.are_samples() => walk.name().to_owned(),
            _ => measure.name.clone(),
        };
        let types: Vec<_> = (walk.measures.list.iter())
            .map(|measure| ValueType {
                kind: self.string(&of(measure)),
                unit: self.string(match measure.unit.as_str() {
                    "ns" => "nanoseconds",
                    "bytes" => "bytes",
                    _ => "count",
                }),
            })
            .collect();
        let lead = walk.measures.lead().map_or_else(String::new, of);
        let default = self.string(&lead);
        let period_type = types.get(1).filter(|_| walk.measures.are_samples());
        let target = format!("varid: {} of {}", walk.name(), manifest.target.value);
        let comment = vec![self.string(&target)];
        let duration = walk.profile.recording.duration.as_nanos();
        self.part(Profile {
            sample_type: types.clone(),
            time_nanos: walk.wall_start().saturating_mul(1_000_000_000),
            duration_nanos: i64::try_from(duration).unwrap_or(i64::MAX),
            period_type: period_type.copied(),
            comment,
            default_sample_type: default,
            ..Profile::default()
        })
    }

    fn row(&mut self, row: Row) -> io::Result<()> {
        let mut locations = Vec::new();
        for frame in self.walk.frames(row.stack) {
            self.frame(frame)?;
            locations.push(location_id(frame));
        }
        let process = self.walk.process_name(row.task);
        let label = vec![
            self.text_label("layer", self.walk.layer(row.stack).name()),
            self.text_label("thread", &row.task.name),
            self.text_label("process", process),
            self.number_label("tid", row.task.tid.get()),
            self.number_label("pid", row.task.pid.get()),
        ];
        self.part(Profile {
            sample: vec![Sample {
                location_id: locations,
                value: (0..self.walk.measures.list.len())
                    .map(|place| signed(row.weight.get(place)))
                    .collect(),
                label,
            }],
            ..Profile::default()
        })
    }

    /// Writes a location and its references, if it is new.
    fn frame(&mut self, id: FrameId) -> io::Result<()> {
        if !self.frames.insert(id) {
            return Ok(());
        }
        let Some(frame) = self.walk.frame(id) else {
            return Ok(());
        };
        let mut part = Profile::default();
        let mut mapping_id = 0;
        if let Some(symbol) = self.walk.symbol(frame.symbol) {
            mapping_id = u64::from(symbol.image.0).saturating_add(1);
            if self.images.insert(symbol.image) {
                let image = self.walk.image_of(symbol);
                part.mapping.push(Mapping {
                    id: mapping_id,
                    filename: self.string(image.map_or("", |image| image.name.as_str())),
                    has_functions: true,
                    has_filenames: true,
                    has_line_numbers: true,
                    has_inline_frames: true,
                });
            }
            if self.symbols.insert(frame.symbol) {
                let recorded = symbol.recorded.as_ref().unwrap_or(&symbol.name);
                let file = self.files.of(frame.symbol);
                part.function.push(Function {
                    id: function_id(frame.symbol),
                    name: self.string(&symbol.name),
                    system_name: self.string(recorded),
                    filename: self.string(file.unwrap_or_default()),
                });
            }
        }
        part.location.push(Location {
            id: location_id(id),
            mapping_id,
            line: vec![Line {
                function_id: function_id(frame.symbol),
                line: frame.line.as_ref().map_or(0, |line| i64::from(line.line)),
            }],
        });
        self.part(part)
    }

    fn string(&mut self, text: &str) -> i64 {
        i64::from(self.strings.id(text))
    }

    fn text_label(&mut self, key: &str, text: &str) -> Label {
        Label {
            key: self.string(key),
            text: self.string(text),
            number: 0,
        }
    }

    fn number_label(&mut self, key: &str, number: u32) -> Label {
        Label {
            key: self.string(key),
            text: 0,
            number: i64::from(number),
        }
    }

    /// Writes a part with its new strings.
    fn part(&mut self, mut part: Profile) -> io::Result<()> {
        part.string_table = self.strings.take_new();
        self.out.part(&part)
    }
}

/// Location ids start at 1: 0 stands for none.
fn location_id(frame: FrameId) -> u64 {
    u64::from(frame.0).saturating_add(1)
}

fn function_id(symbol: SymbolId) -> u64 {
    u64::from(symbol.0).saturating_add(1)
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
