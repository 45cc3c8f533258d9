//! How does a profile look to viewers of Chrome's trace events? Slices of each thread by time, one on the other as frames are.
//!
//! A slice lasts from the first sample that has the frame to the last one after the other; where a thread has no sample for longer than
//! two samples are apart, it ends. `own` at its end is what the samples weigh whose leaf it is.

use std::{borrow::Cow, io::Write};

use serde::Serialize;
use serde_json::json;
use varid_model::Layer;

use super::{
    json::write as to_writer,
    walk::{Thread, UNKNOWN, Walk, plain},
};
use crate::{error::Result, frames::SymbolId, samples::ProfileSample};

/// Nanoseconds of a microsecond, in which times are.
const MICROSECOND: f64 = 1e3;

/// Writes the events of one thread after the other.
pub fn write(walk: &Walk, out: &mut dyn Write) -> Result<()> {
    write!(out, r#"{{"displayTimeUnit":"ns","otherData":"#)?;
    to_writer(
        out,
        &json!({"producer": "varid", "title": walk.title(), "lost": walk.profile.recording.lost}),
    )?;
    write!(out, r#","traceEvents":["#)?;
    to_writer(
        out,
        &json!({"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "varid"}}),
    )?;
    for loss in &walk.profile.recording.losses {
        writeln!(out, ",")?;
        let time = microseconds(walk.since_start(loss.time));
        to_writer(
            out,
            &json!({
                "ph": "i", "s": "g", "pid": 0, "tid": 0, "ts": time, "name": "lost records", "args": {"records": loss.count},
            }),
        )?;
    }
    for thread in walk.threads()? {
        Slices {
            walk,
            thread: &thread,
            open: Vec::new(),
            out,
        }
        .write()?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // a day has 47 bits of nanoseconds
fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / MICROSECOND
}

#[derive(Serialize)]
struct Begin<'w> {
    ph: &'static str,
    pid: u32,
    tid: u32,
    ts: f64,
    name: &'w str,
    cat: &'static str,
}

#[derive(Serialize)]
struct End<'w> {
    ph: &'static str,
    pid: u32,
    tid: u32,
    ts: f64,
    /// speedscope looks for the beginning of the same name.
    name: &'w str,
    #[serde(skip_serializing_if = "is_zero")]
    own: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A thread's slices that have begun and not ended, the outermost first, with what each weighs by itself.
struct Slices<'w, 'p> {
    walk: &'w Walk<'p>,
    thread: &'w Thread<'p>,
    open: Vec<(Option<SymbolId>, u64)>,
    out: &'w mut dyn Write,
}

impl Slices<'_, '_> {
    fn write(mut self) -> Result<()> {
        let (pid, tid) = (self.thread.pid.get(), self.thread.tid.get());
        let process = self.walk.process_name(self.thread.pid, self.thread.name);
        for (name, text) in [("process_name", process), ("thread_name", self.thread.name)] {
            writeln!(self.out, ",")?;
            to_writer(
                self.out,
                &json!({"ph": "M", "pid": pid, "tid": tid, "name": name, "args": {"name": plain(text)}}),
            )?;
        }
        let interval = self.walk.interval();
        let mut end = 0;
        for sample in &self.thread.samples {
            let time = self.walk.since_start(sample.time);
            if time.saturating_sub(end) > interval.saturating_mul(2) {
                self.end_from(0, end)?;
                end = time.saturating_sub(interval).max(end);
            }
            // What begins does so after what ends, however viewers sort events of the same time.
            let begin = end.saturating_add(1);
            self.sample(sample, begin, end)?;
            end = time.max(begin.saturating_add(1));
        }
        self.end_from(0, end)
    }

    /// Ends the slices that a sample does not have, and begins those that are new in it.
    fn sample(&mut self, sample: &ProfileSample, begin: u64, end: u64) -> Result<()> {
        let walk = self.walk;
        let frames = walk.frames(sample.stack);
        let mut symbols: Vec<_> = frames
            .map(|frame| self.walk.frame(frame).map(|frame| frame.symbol))
            .collect();
        symbols.reverse();
        let open = self.open.iter().map(|(symbol, _)| symbol);
        let common = open
            .zip(&symbols)
            .take_while(|(open, new)| open == new)
            .count();
        self.end_from(common, end)?;
        for symbol in symbols.into_iter().skip(common) {
            writeln!(self.out, ",")?;
            to_writer(
                self.out,
                &Begin {
                    ph: "B",
                    pid: self.thread.pid.get(),
                    tid: self.thread.tid.get(),
                    ts: microseconds(begin),
                    name: &name(walk, symbol),
                    cat: layer(walk, symbol).name(),
                },
            )?;
            self.open.push((symbol, 0));
        }
        if let Some((_, own)) = self.open.last_mut() {
            *own = own.saturating_add(self.walk.sample_value(sample));
        }
        Ok(())
    }

    /// Ends all slices but the outermost ones.
    fn end_from(&mut self, kept: usize, time: u64) -> Result<()> {
        let walk = self.walk;
        while self.open.len() > kept {
            let Some((symbol, own)) = self.open.pop() else {
                break;
            };
            writeln!(self.out, ",")?;
            to_writer(
                self.out,
                &End {
                    ph: "E",
                    pid: self.thread.pid.get(),
                    tid: self.thread.tid.get(),
                    ts: microseconds(time),
                    name: &name(walk, symbol),
                    own,
                },
            )?;
        }
        Ok(())
    }
}

fn name<'p>(walk: &Walk<'p>, symbol: Option<SymbolId>) -> Cow<'p, str> {
    let symbol = symbol.and_then(|symbol| walk.symbol(symbol));
    plain(symbol.map_or(UNKNOWN, |symbol| &symbol.name))
}

fn layer(walk: &Walk, symbol: Option<SymbolId>) -> Layer {
    let symbol = symbol.and_then(|symbol| walk.symbol(symbol));
    symbol.map_or(Layer::Native, |symbol| symbol.layer)
}
