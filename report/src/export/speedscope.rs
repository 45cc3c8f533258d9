//! The JSON format of speedscope: a list of frames, and for each thread its sampled stacks in order of time.

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use super::{
    Content, ExportFormat, FormatMeasures, Need,
    interner::Interner,
    json::{List, write as to_writer},
    walk::{Thread, Walk, plain},
};
use crate::{
    error::Result,
    frames::{FrameId, ProfileFrame, SymbolId},
    samples::ProfileSample,
    stacks::StackId,
    unit::Unit,
};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<S: Serialize, W: Serialize> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: S,
    weights: W,
}

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "speedscope",
    aliases: &[],
    about: "speedscope's JSON: speedscope.app",
    endings: &[".speedscope.json"],
    needs: &[Need::Samples],
    measures: FormatMeasures::Samples,
    content: Content::Text,
    write: |input, out| write(&input.walk, out),
};

/// Writes the profile. Consecutive samples of a thread with the same stack are merged.
fn write(walk: &Walk, out: &mut dyn Write) -> Result<()> {
    let threads = walk.threads()?;
    let symbols = symbols(walk);
    write!(out, r#"{{"$schema":"{SCHEMA}","exporter":"varid","name":"#)?;
    to_writer(out, &walk.title())?;
    write!(out, r#","activeProfileIndex":0,"shared":{{"frames":"#)?;
    let frame = |symbol: &Option<SymbolId>| {
        let image = symbol.and_then(|symbol| walk.image_of(walk.symbol(symbol)?));
        json!({
            "name": walk.symbol_name(*symbol),
            "file": plain(image.map_or("", |image| &image.name)),
        })
    };
    to_writer(out, &List(|| symbols.keys().iter().map(frame)))?;
    write!(out, r#"}},"profiles":["#)?;
    let frames = walk.profile.frames.frames().iter();
    let number = |frame: &ProfileFrame| symbols.get(Some(frame.symbol)).unwrap_or_default();
    let numbers: Vec<u32> = frames.map(number).collect();
    for (number, thread) in threads.iter().enumerate() {
        if number > 0 {
            writeln!(out, ",")?;
        }
        write_thread(walk, thread, &numbers, out)?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

/// Returns the symbols in the stacks of the event. The first entry is for frames without a symbol.
fn symbols(walk: &Walk) -> Interner<Option<SymbolId>> {
    let mut symbols = Interner::new();
    symbols.id(None);
    let stacks = &walk.profile.stacks;
    let mut seen = vec![false; stacks.len()];
    for leaf in walk.rows().filter_map(|row| row.stack) {
        for stack in stacks.walk(leaf) {
            match seen.get_mut(stack.index()) {
                Some(seen) if !*seen => *seen = true,
                _ => break,
            }
            let frame = stacks.frame(stack).and_then(|frame| walk.frame(frame));
            symbols.id(frame.map(|frame| frame.symbol));
        }
    }
    symbols
}

/// `symbols` has the index of the symbol by [`FrameId`].
fn write_thread(walk: &Walk, thread: &Thread, symbols: &[u32], out: &mut dyn Write) -> Result<()> {
    let runs = runs(walk, &thread.samples);
    let number = |frame: FrameId| {
        let symbol = symbols.get(frame.index());
        symbol.copied().unwrap_or_default()
    };
    let frames = |(stack, _): &(Option<StackId>, u64)| {
        let mut frames: Vec<u32> = walk.frames(*stack).map(number).collect();
        frames.reverse();
        if frames.is_empty() {
            frames.push(0);
        }
        frames
    };
    let weights = runs.iter().map(|(_, weight)| *weight);
    let profile = Sampled {
        kind: "sampled",
        name: plain(&format!(
            "{} {} ({} {})",
            thread.name, thread.tid, thread.process, thread.pid
        ))
        .into_owned(),
        unit: match walk.unit() {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Events | Unit::Samples => "none",
        },
        start_value: 0,
        end_value: weights.fold(0, u64::saturating_add),
        samples: List(|| runs.iter().map(frames)),
        weights: List(|| runs.iter().map(|(_, weight)| *weight)),
    };
    to_writer(out, &profile)?;
    Ok(())
}

/// Merges consecutive samples with the same stack, each with the sum of their values.
fn runs(walk: &Walk, samples: &[ProfileSample]) -> Vec<(Option<StackId>, u64)> {
    let mut runs: Vec<(Option<StackId>, u64)> = Vec::new();
    for sample in samples {
        let value = walk.sample_value(sample);
        match runs.last_mut() {
            Some((stack, weight)) if *stack == sample.stack => {
                *weight = weight.saturating_add(value);
            }
            _ => runs.push((sample.stack, value)),
        }
    }
    runs
}
