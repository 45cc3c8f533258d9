//! Chrome's trace event format: nested slices of frames for each thread over time.
//!
//! A slice lasts from the first to the last of consecutive samples with the frame. It ends if the thread has no sample
//! for longer than the interval between two samples. `own` at its end is the weight of the samples whose leaf it is.

use std::io::{self, Write};

use serde_json::json;

use super::{
    Content, ExportFormat, FormatMeasures, Need,
    json::write as to_writer,
    walk::{Thread, Walk, plain},
};
use crate::{error::Result, frames::SymbolId, samples::ProfileSample};

/// Nanoseconds in a microsecond, the unit of times.
const MICROSECOND: f64 = 1e3;

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "chrome",
    aliases: &[],
    about: "Trace events by time: chrome://tracing, Perfetto",
    endings: &[],
    needs: &[Need::Samples],
    measures: FormatMeasures::Samples,
    content: Content::Text,
    write: |input, out| write(&input.walk, out),
};

/// Writes the events of one thread after the other.
fn write(walk: &Walk, out: &mut dyn Write) -> Result<()> {
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
    let texts = symbol_texts(walk)?;
    let mut buffer = Vec::new();
    for thread in walk.threads()? {
        let (pid, tid) = (thread.pid, thread.tid);
        let event =
            |kind: char| format!(",\n{{\"ph\":\"{kind}\",\"pid\":{pid},\"tid\":{tid},\"ts\":");
        Slices {
            walk,
            thread: &thread,
            texts: &texts,
            begin: event('B'),
            end: event('E'),
            open: Vec::new(),
            symbols: Vec::new(),
            buffer: &mut buffer,
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

/// The JSON that follows the time in begin and end events of a symbol's slices.
#[derive(Debug, Clone)]
struct SymbolText {
    begin: String,
    /// speedscope matches the begin event by name. `own` may follow.
    end: String,
}

impl SymbolText {
    fn new(walk: &Walk, symbol: Option<SymbolId>) -> io::Result<Self> {
        let name = serde_json::to_string(&walk.symbol_name(symbol))?;
        let layer = walk.symbol_layer(symbol).name();
        Ok(Self {
            begin: format!(r#","name":{name},"cat":"{layer}"}}"#),
            end: format!(r#","name":{name}"#),
        })
    }
}

/// Returns the texts of all symbols. The first one is for frames without a symbol.
fn symbol_texts(walk: &Walk) -> io::Result<Vec<SymbolText>> {
    let ids = (0..walk.profile.frames.symbols().len()).map(|place| u32::try_from(place).ok());
    let symbols = std::iter::once(None).chain(ids.map(|id| id.map(SymbolId)));
    symbols
        .map(|symbol| SymbolText::new(walk, symbol))
        .collect()
}

/// Number of bytes that are buffered before a write.
const CHUNK: usize = 1 << 18;

/// A thread's open slices, outermost first, each with its own weight.
struct Slices<'w, 'p> {
    walk: &'w Walk<'p>,
    thread: &'w Thread<'p>,
    texts: &'w [SymbolText],
    /// The start of each event of the thread.
    begin: String,
    end: String,
    open: Vec<(Option<SymbolId>, u64)>,
    /// The symbols of the current sample, outermost first.
    symbols: Vec<Option<SymbolId>>,
    /// Output that has not been written.
    buffer: &'w mut Vec<u8>,
    out: &'w mut dyn Write,
}

impl Slices<'_, '_> {
    fn write(mut self) -> Result<()> {
        let (pid, tid) = (self.thread.pid.get(), self.thread.tid.get());
        let names = [
            ("process_name", self.thread.process),
            ("thread_name", self.thread.name),
        ];
        for (name, text) in names {
            writeln!(self.buffer, ",")?;
            serde_json::to_writer(
                &mut *self.buffer,
                &json!({"ph": "M", "pid": pid, "tid": tid, "name": name, "args": {"name": plain(text)}}),
            )
            .map_err(io::Error::from)?;
        }
        let interval = self.walk.interval();
        let mut end = 0;
        for sample in &self.thread.samples {
            let time = self.walk.since_start(sample.time);
            if time.saturating_sub(end) > interval.saturating_mul(2) {
                self.end_from(0, end)?;
                end = time.saturating_sub(interval).max(end);
            }
            // A begin event must follow an end event at the same time, however viewers sort events.
            let begin = end.saturating_add(1);
            self.sample(sample, begin, end)?;
            end = time.max(begin.saturating_add(1));
        }
        self.end_from(0, end)?;
        self.out.write_all(self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the slices that a sample does not have, and begins the new ones.
    fn sample(&mut self, sample: &ProfileSample, begin: u64, end: u64) -> Result<()> {
        let walk = self.walk;
        self.symbols.clear();
        let frames = walk.frames(sample.stack);
        self.symbols
            .extend(frames.map(|frame| walk.frame(frame).map(|frame| frame.symbol)));
        self.symbols.reverse();
        let open = self.open.iter().map(|(symbol, _)| symbol);
        let common = open
            .zip(&self.symbols)
            .take_while(|(open, new)| open == new)
            .count();
        self.end_from(common, end)?;
        let time = serde_json::to_string(&microseconds(begin)).map_err(io::Error::from)?;
        for symbol in self.symbols.iter().skip(common) {
            self.buffer.extend_from_slice(self.begin.as_bytes());
            self.buffer.extend_from_slice(time.as_bytes());
            let text = text(self.texts, *symbol).map_or("", |text| &text.begin);
            self.buffer.extend_from_slice(text.as_bytes());
            self.open.push((*symbol, 0));
        }
        if let Some((_, own)) = self.open.last_mut() {
            *own = own.saturating_add(self.walk.sample_value(sample));
        }
        if self.buffer.len() >= CHUNK {
            self.out.write_all(self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Ends all slices except the outermost `kept` ones.
    fn end_from(&mut self, kept: usize, time: u64) -> Result<()> {
        let time = serde_json::to_string(&microseconds(time)).map_err(io::Error::from)?;
        while self.open.len() > kept {
            let Some((symbol, own)) = self.open.pop() else {
                break;
            };
            self.buffer.extend_from_slice(self.end.as_bytes());
            self.buffer.extend_from_slice(time.as_bytes());
            let text = text(self.texts, symbol).map_or("", |text| &text.end);
            self.buffer.extend_from_slice(text.as_bytes());
            if own > 0 {
                write!(self.buffer, ",\"own\":{own}")?;
            }
            self.buffer.push(b'}');
        }
        Ok(())
    }
}

/// Returns the text of a symbol, or of a frame without a symbol.
fn text(texts: &[SymbolText], symbol: Option<SymbolId>) -> Option<&SymbolText> {
    let place = match symbol {
        Some(symbol) => symbol.index().checked_add(1)?,
        None => 0,
    };
    texts.get(place)
}
