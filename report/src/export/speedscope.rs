//! How does a profile look to speedscope? Its JSON: a list of frames, and for each thread the stacks that it was sampled in, by time.

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use super::{
    interner::Interner,
    json::{List, write as to_writer},
    walk::{Thread, UNKNOWN, Walk, plain},
};
use crate::{
    error::Result,
    frames::{FrameId, SymbolId},
    samples::ProfileSample,
    scope::Unit,
    stacks::StackId,
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

/// Writes the profile. Samples that a thread has in the same stack one after the other are one.
pub fn write(walk: &Walk, out: &mut dyn Write) -> Result<()> {
    let threads = walk.threads()?;
    let symbols = symbols(walk);
    write!(out, r#"{{"$schema":"{SCHEMA}","exporter":"varid","name":"#)?;
    to_writer(out, &walk.title())?;
    write!(out, r#","activeProfileIndex":0,"shared":{{"frames":"#)?;
    let frame = |symbol: &Option<SymbolId>| {
        let symbol = symbol.and_then(|symbol| walk.symbol(symbol));
        let image = symbol.and_then(|symbol| walk.image_of(symbol));
        json!({
            "name": plain(symbol.map_or(UNKNOWN, |symbol| &symbol.name)),
            "file": plain(image.map_or("", |image| &image.name)),
        })
    };
    to_writer(out, &List(|| symbols.keys().iter().map(frame)))?;
    write!(out, r#"}},"profiles":["#)?;
    for (number, thread) in threads.iter().enumerate() {
        if number > 0 {
            writeln!(out, ",")?;
        }
        write_thread(walk, thread, &symbols, out)?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

/// The symbols that are in any stack of the event; the first one is none.
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

fn write_thread(
    walk: &Walk,
    thread: &Thread,
    symbols: &Interner<Option<SymbolId>>,
    out: &mut dyn Write,
) -> Result<()> {
    let runs = runs(walk, &thread.samples);
    let number = |frame: FrameId| {
        let symbol = walk.frame(frame).map(|frame| frame.symbol);
        symbols.get(symbol).unwrap_or_default()
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
    let process = walk.process_name(thread.pid, thread.name);
    let profile = Sampled {
        kind: "sampled",
        name: plain(&format!(
            "{} {} ({process} {})",
            thread.name, thread.tid, thread.pid
        ))
        .into_owned(),
        unit: match walk.unit() {
            Unit::Nanoseconds => "nanoseconds",
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

/// The stacks of samples by time, each with what its samples weigh until the next one.
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
