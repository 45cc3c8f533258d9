//! The encoding of counters, processes, thread switches and traces in contexts.data.

use varid_model::{MonotonicNs, Pid, Tid};

use super::{
    parts::{ContextCounter, ThreadSwitch, TraceCompression},
    tables::ProcessIndex,
};
use crate::chunks::{Payload, put_difference, put_number, put_text, put_thread};

/// Appends a counter: its name and unit.
pub fn put_counter(out: &mut Vec<u8>, counter: &ContextCounter) {
    put_text(out, &counter.name);
    put_text(out, &counter.unit);
}

pub fn counter(payload: &mut Payload<'_>) -> Result<ContextCounter, &'static str> {
    Ok(ContextCounter {
        name: payload.text()?.to_owned(),
        unit: payload.text()?.to_owned(),
    })
}

/// Appends a process: its id and the name of its VM. It is the only record of its chunk.
pub fn put_process(out: &mut Vec<u8>, pid: Pid, vm: &str) {
    put_number(out, u64::from(pid.get()));
    put_text(out, vm);
}

pub fn process<'a>(payload: &mut Payload<'a>) -> Result<(Pid, &'a str), &'static str> {
    Ok((Pid::new(payload.small()?), payload.text()?))
}

/// Appends the end of a process: the process, then 0, or 1 and the reason why it is incomplete. It is the only record
/// of its chunk.
pub fn put_process_end(out: &mut Vec<u8>, process: ProcessIndex, incomplete: Option<&str>) {
    put_number(out, u64::from(process.0));
    out.push(u8::from(incomplete.is_some()));
    if let Some(reason) = incomplete {
        put_text(out, reason);
    }
}

pub fn process_end<'a>(
    payload: &mut Payload<'a>,
) -> Result<(ProcessIndex, Option<&'a str>), &'static str> {
    let process = ProcessIndex(payload.small()?);
    let incomplete = match payload.byte()? {
        0 => None,
        1 => Some(payload.text()?),
        _ => return Err("an end of a process of an unknown kind"),
    };
    Ok((process, incomplete))
}

/// The last thread switch of a chunk. The next one is encoded as differences: its time and previous thread to the time
/// and next thread of this one.
#[derive(Debug, Default)]
pub struct LastSwitch {
    time: u64,
    to: u32,
}

impl LastSwitch {
    pub fn encode(&mut self, out: &mut Vec<u8>, switch: &ThreadSwitch) {
        let (time, from, to) = (switch.time.get(), switch.from.get(), switch.to.get());
        put_difference(out, self.time, time);
        put_difference(out, u64::from(self.to), u64::from(from));
        put_difference(out, u64::from(from), u64::from(to));
        *self = Self { time, to };
    }

    pub fn decode(&mut self, payload: &mut Payload<'_>) -> Result<ThreadSwitch, &'static str> {
        let time = payload.difference(self.time)?;
        let from = payload.small_difference(self.to)?;
        let to = payload.small_difference(from)?;
        *self = Self { time, to };
        Ok(ThreadSwitch {
            time: MonotonicNs::new(time),
            from: Tid::new(from),
            to: Tid::new(to),
        })
    }
}

/// The header of a part of a trace. The bytes follow, up to the end of the chunk.
#[derive(Debug, Clone, Copy)]
pub struct TraceRecord {
    pub process: ProcessIndex,
    pub tid: Option<Tid>,
    pub compression: TraceCompression,
}

/// The kinds of compression.
mod compression {
    pub const PLAIN: u8 = 0;
    pub const ZSTD: u8 = 1;
}

/// Appends the header of a part of a trace: process, thread, compression (a byte).
pub fn put_trace(out: &mut Vec<u8>, trace: &TraceRecord) {
    put_number(out, u64::from(trace.process.0));
    put_thread(out, trace.tid);
    out.push(match trace.compression {
        TraceCompression::Plain => compression::PLAIN,
        TraceCompression::Zstd => compression::ZSTD,
    });
}

pub fn trace(payload: &mut Payload<'_>) -> Result<TraceRecord, &'static str> {
    let process = ProcessIndex(payload.small()?);
    let tid = payload.thread()?;
    let compression = match payload.byte()? {
        compression::PLAIN => TraceCompression::Plain,
        compression::ZSTD => TraceCompression::Zstd,
        _ => return Err("a trace of an unknown compression"),
    };
    Ok(TraceRecord {
        process,
        tid,
        compression,
    })
}
