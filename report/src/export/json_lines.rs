//! JSON Lines with an object for each sample, in order of time. A public interface: docs/formats/samples-jsonl.md.

use std::{borrow::Cow, io::Write};

use serde::Serialize;

use super::{
    Content, ExportFormat, FormatMeasures, Need,
    json::write as to_writer,
    walk::{Walk, plain},
};
use crate::{error::Result, frames::FrameId, time_span::nanoseconds};

/// The version of the format.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Head<'w> {
    version: u32,
    event: Cow<'w, str>,
    unit: &'static str,
    target: Cow<'w, str>,
    start: Cow<'w, str>,
    duration_ns: u64,
    lost: u64,
}

#[derive(Serialize)]
struct Sample<'w> {
    time_ns: u64,
    pid: u32,
    tid: u32,
    process: &'w str,
    thread: &'w str,
    layer: &'static str,
    period: u64,
}

#[derive(Serialize)]
struct Frame<'w> {
    symbol: &'w str,
    #[serde(skip_serializing_if = "str::is_empty")]
    image: &'w str,
    layer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Cow<'w, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "is_false")]
    approximate: bool,
    #[serde(skip_serializing_if = "is_false")]
    inlined: bool,
    #[serde(skip_serializing_if = "is_false")]
    marker: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "jsonl",
    aliases: &[],
    about: "JSON Lines: a sample a line",
    endings: &[".jsonl"],
    needs: &[Need::Samples, Need::Lines],
    measures: FormatMeasures::Samples,
    content: Content::Text,
    write: |input, out| write(&input.walk, out),
};

/// Writes a line for the event, and a line for each sample.
fn write(walk: &Walk, out: &mut dyn Write) -> Result<()> {
    let recording = &walk.profile.recording;
    let head = Head {
        version: VERSION,
        event: plain(&walk.description.name),
        unit: crate::unit::Unit::of(walk.description).name(),
        target: plain(&recording.manifest.target.value),
        start: plain(&recording.manifest.wall_start),
        duration_ns: nanoseconds(recording.duration),
        lost: recording.lost,
    };
    to_writer(out, &head)?;
    writeln!(out)?;
    // Frames are repeated often, so their JSON is cached.
    let mut texts: Vec<Option<String>> = Vec::new();
    texts.resize_with(walk.profile.frames.frames().len(), || None);
    let mut written = Vec::new();
    for sample in walk.samples()? {
        let Some(task) = walk.profile.tasks.task(sample.task) else {
            continue;
        };
        for frame in walk.frames(sample.stack) {
            if let Some(text @ None) = texts.get_mut(frame.index()) {
                *text = Some(frame_text(walk, frame)?);
            }
        }
        let text = |frame: FrameId| texts.get(frame.index()).and_then(Option::as_ref);
        let line = Sample {
            time_ns: walk.since_start(sample.time),
            pid: task.pid.get(),
            tid: task.tid.get(),
            process: &plain(walk.process_name(task)),
            thread: &plain(&task.name),
            layer: walk.layer(sample.stack).name(),
            period: sample.period.get(),
        };
        written.clear();
        serde_json::to_writer(&mut written, &line).map_err(std::io::Error::from)?;
        written.pop();
        written.extend_from_slice(b",\"frames\":[");
        for (number, text) in walk.frames(sample.stack).filter_map(text).enumerate() {
            if number > 0 {
                written.push(b',');
            }
            written.extend_from_slice(text.as_bytes());
        }
        written.extend_from_slice(b"]}\n");
        out.write_all(&written)?;
    }
    Ok(())
}

fn frame_text(walk: &Walk, id: FrameId) -> std::io::Result<String> {
    let line = walk.frame(id).and_then(|frame| frame.line.as_ref());
    let symbol = walk.symbol_of(id);
    let image = symbol.and_then(|symbol| walk.image_of(symbol));
    let frame = Frame {
        symbol: &plain(symbol.map_or("", |symbol| &symbol.name)),
        image: &plain(image.map_or("", |image| &image.name)),
        layer: walk
            .symbol_layer(walk.frame(id).map(|frame| frame.symbol))
            .name(),
        file: line.map(|line| plain(&line.file)),
        line: line.map(|line| line.line),
        approximate: line.is_some_and(|line| line.precision.is_approximate()),
        inlined: symbol.is_some_and(|symbol| symbol.inlined),
        marker: symbol.is_some_and(|symbol| symbol.marker.is_some()),
    };
    Ok(serde_json::to_string(&frame)?)
}
