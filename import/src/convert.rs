//! How does perf.data become a session?
//!
//! Its records are put in order of time; `converter` says what becomes of each.

use varid_model::perf::{
    PERF_TYPE_TRACEPOINT,
    file::{FINISHED_ROUND, FIRST_KIND},
};

use crate::{
    chain::Callers,
    converter::{Converter, Events},
    error::{Error, Result},
    format::ImportFormat,
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

/// The records of a file, and the latest time of those that were read; none: it has ended.
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
    let host = host(&source.features);
    let is_here = !host.machine.is_empty();
    let simpleperf = source.features.is_simpleperf();
    let writer_name = if simpleperf { "simpleperf" } else { "perf" };
    let tracing_data = &source.features.tracing_data;
    let Some((events, places)) = session_events(&source.events, tracing_data) else {
        return Err(Error::NoSamples {
            path: input.path,
            why: "it has no event that is sampled".to_owned(),
        });
    };
    let with_fields: Vec<bool> = events
        .iter()
        .map(|event| event.kind == PERF_TYPE_TRACEPOINT)
        .collect();
    let origin = Origin {
        input: &input,
        format: READER.name,
        writer: Some(writer_name.to_owned()),
        target: target(&source.features, &input),
        host: host.clone(),
        events,
    };
    let mut writer = origin.session(&request.output)?;
    writer.describe_tracepoints(source.features.tracing_data.clone());
    let trusted_before = is_here.then_some(input.modified);
    let callers = match simpleperf {
        true => Callers::Calls,
        false => Callers::Returns,
    };
    let notes = source.notes;
    let mut converter = Converter::new(writer, &host, callers, trusted_before, notes);
    if !request.without_names {
        converter.take_names(&input, &source.features, &host.arch)?;
    }
    if let Some(missing) = &input.missing {
        converter.note(missing.clone());
    }
    if source.features.is_folder && input.parts.is_empty() {
        converter.note(
            "it is one file of a folder that 'perf record --threads' wrote: the others, which have samples, too, are imported with the folder"
                .to_owned(),
        );
    }
    if source
        .events
        .iter()
        .any(|event| event.name == "sched:sched_switch")
    {
        converter.note(
            "sched:sched_switch counts switches, not the time that threads waited: 'varid record --off-cpu' measures that"
                .to_owned(),
        );
    }
    let all = source.events.iter().zip(&places);
    for (event, _) in all.filter(|(event, place)| place.is_none() && !event.is_dummy()) {
        converter.note(format!(
            "{} is counted with another event's samples, which do not have its counts",
            event.name
        ));
    }
    let records = std::iter::once(&source.records).chain(&input.parts);
    let mut streams = Vec::new();
    for range in records {
        streams.push(Stream {
            reader: RecordReader::new(input.reader()?, range.clone()),
            latest: Some(0),
        });
    }
    let has_rounds = streams.len() == 1;
    let mut sorter = RecordSorter::default();
    let events = Events {
        all: &source.events,
        index: &source.index,
        places: &places,
        with_fields: &with_fields,
        build_ids: &source.features.build_ids,
    };
    // The files of a folder are read side by side, by their times.
    while let Some(stream) = streams
        .iter_mut()
        .filter(|stream| stream.latest.is_some())
        .min_by_key(|stream| stream.latest)
    {
        match stream.reader.next() {
            Ok(Some(record)) if record.kind == FINISHED_ROUND => {
                // Compressed records come behind the end of their round.
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
            converter.record(&events, &record)?;
        }
    }
    sorter.end();
    while let Some(record) = sorter.next_ready() {
        converter.record(&events, &record)?;
    }
    converter.finish(input, &host, &source.features, READER.name)
}
