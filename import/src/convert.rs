//! Converts perf.data to a session.
//!
//! The records are sorted by time. `converter` converts each of them.

use std::{ops::Range, path::Path};

use varid_model::perf::{
    PERF_TYPE_TRACEPOINT,
    file::{FINISHED_ROUND, FIRST_KIND},
};
use varid_recording::{Host, SessionEvents};

use crate::{
    chain::Callers,
    converter::{Converter, Events},
    error::{Error, Result},
    format::ImportFormat,
    input::Input,
    perfdata::{Damage, PerfData, RecordReader, RecordSorter, is_perf_data},
    request::{ImportRequest, Imported, Origin},
    source_facts::{host, session_events, target},
};

/// perf.data.
pub(crate) static READER: ImportFormat = ImportFormat {
    name: "perf-data",
    about: "perf.data of perf or simpleperf",
    noun: "perf.data",
    recognises: |start| is_perf_data(start.bytes()),
    read: import,
};

/// The records of a file, and the latest time of those that were read. None at the end of the file.
struct Stream<R> {
    reader: RecordReader<R>,
    latest: Option<u64>,
}

/// Imports perf.data of perf or simpleperf.
fn import(request: ImportRequest) -> Result<Imported> {
    let input = request.input;
    let damaged = |damage: Damage| Error::Data {
        path: input.path.clone(),
        offset: damage.offset,
        reason: damage.reason,
    };
    let source = PerfData::read(&mut input.reader()?, input.len).map_err(damaged)?;
    let tracing_data = &source.features.tracing_data;
    let Some((sampled, places)) = session_events(&source.events, tracing_data) else {
        return Err(Error::NoSamples {
            path: input.path,
            why: "it has no event that is sampled".to_owned(),
        });
    };
    let with_fields: Vec<bool> = sampled
        .iter()
        .map(|event| event.kind == PERF_TYPE_TRACEPOINT)
        .collect();
    let host = host(&source.features);
    let mut converter = begin(&input, &source, &host, sampled, &request.output)?;
    if !request.without_names {
        converter.take_names(&input, &source.features, &host.arch)?;
    }
    for note in notes(&input, &source, &places) {
        converter.note(note);
    }
    let events = Events {
        all: &source.events,
        index: &source.index,
        places: &places,
        with_fields: &with_fields,
        build_ids: &source.features.build_ids,
    };
    convert_records(&mut converter, &input, &source.records, &events)?;
    converter.finish(input, &host, &source.features, READER.name)
}

/// Begins the session of a source, whose samples are of `events`.
fn begin(
    input: &Input,
    source: &PerfData,
    host: &Host,
    events: SessionEvents,
    output: &Path,
) -> Result<Converter> {
    let (writer_name, callers) = match source.features.is_simpleperf() {
        true => ("simpleperf", Callers::Calls),
        false => ("perf", Callers::Returns),
    };
    let origin = Origin {
        input,
        format: READER.name,
        writer: Some(writer_name.to_owned()),
        target: target(&source.features, input),
        host: host.clone(),
        events,
    };
    let mut writer = origin.session(output)?;
    writer.describe_tracepoints(source.features.tracing_data.clone());
    let is_here = !host.machine.is_empty();
    let trusted_before = is_here.then_some(input.modified);
    let notes = source.notes.clone();
    Ok(Converter::new(writer, host, callers, trusted_before, notes))
}

/// What a session does not have of its source, as sentences. `places`: of each of the source's events, where it is in the session.
fn notes(input: &Input, source: &PerfData, places: &[Option<usize>]) -> Vec<String> {
    let mut notes: Vec<String> = input.missing.iter().cloned().collect();
    if source.features.is_folder && input.parts.is_empty() {
        notes.push(
            "it is one file of a folder that 'perf record --threads' wrote: the others, which have samples, too, are imported with the folder"
                .to_owned(),
        );
    }
    let mut events = source.events.iter();
    if events.any(|event| event.name == "sched:sched_switch") {
        notes.push(
            "sched:sched_switch counts switches, not the time that threads waited: 'varid record --off-cpu' measures that"
                .to_owned(),
        );
    }
    for (event, place) in source.events.iter().zip(places) {
        if place.is_none() && !event.is_dummy() {
            notes.push(format!(
                "{} is counted with another event's samples, which do not have its counts",
                event.name
            ));
        }
    }
    notes
}

/// Converts all records, in order of time. `records`: those of the file itself; those of a folder's other files lie behind them.
fn convert_records(
    converter: &mut Converter,
    input: &Input,
    records: &Range<u64>,
    events: &Events<'_>,
) -> Result<()> {
    let mut streams = Vec::new();
    for range in std::iter::once(records).chain(&input.parts) {
        streams.push(Stream {
            reader: RecordReader::new(input.reader()?, range.clone()),
            latest: Some(0),
        });
    }
    let has_rounds = streams.len() == 1;
    let mut sorter = RecordSorter::default();
    // The files of a folder are read in parallel, by time.
    while let Some(stream) = streams
        .iter_mut()
        .filter(|stream| stream.latest.is_some())
        .min_by_key(|stream| stream.latest)
    {
        match stream.reader.next() {
            Ok(Some(record)) if record.kind == FINISHED_ROUND => {
                // Compressed records follow the end of their round.
                if has_rounds && !stream.reader.is_compressed() {
                    sorter.end_round();
                }
            }
            Ok(Some(record)) if record.kind < FIRST_KIND => {
                let time = events.time(&record);
                stream.latest = stream.latest.max(time);
                sorter.add(time, record);
            }
            Ok(Some(_)) => {}
            Ok(None) => stream.latest = None,
            Err(damage) => {
                stream.latest = None;
                let Damage { offset, reason } = damage;
                let note = format!(
                    "the source is damaged: offset {offset:#x}: {reason}; what follows is left out"
                );
                converter.note(note);
            }
        }
        while let Some(record) = sorter.next_ready() {
            converter.record(events, &record)?;
        }
    }
    sorter.end();
    while let Some(record) = sorter.next_ready() {
        converter.record(events, &record)?;
    }
    Ok(())
}
