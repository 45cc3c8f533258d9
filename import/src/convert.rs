//! How does perf.data become a session?
//!
//! Its records are put in order of time; `converter` says what becomes of each.

use std::io::BufReader;

use varid_model::{
    Rate,
    perf::file::{FINISHED_ROUND, FIRST_KIND},
};

use crate::{
    chain::Callers,
    converter::{Converter, Events},
    error::{Error, Result},
    format::SourceFormat,
    perfdata::{Damage, PerfData, RecordReader, RecordSorter},
    request::{ImportRequest, Imported, Origin},
    source_facts::{host, session_events, target},
};

/// Imports perf.data of perf or simpleperf.
pub(crate) fn perf_data(request: ImportRequest) -> Result<Imported> {
    let input = request.input;
    let damaged = |damage: Damage| Error::Data {
        path: input.path.clone(),
        offset: damage.offset,
        reason: damage.reason,
    };
    let file = input
        .file
        .try_clone()
        .map_err(Error::io("read", &input.path))?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let source = PerfData::read(&mut file, input.len).map_err(damaged)?;
    let host = host(&source.features);
    let is_here = !host.machine.is_empty();
    let simpleperf = source.features.is_simpleperf();
    let writer_name = if simpleperf { "simpleperf" } else { "perf" };
    let Some((events, places)) = session_events(&source.events) else {
        return Err(Error::NoSamples {
            path: input.path,
            why: "it has no event that is sampled".to_owned(),
        });
    };
    let origin = Origin {
        input: &input,
        format: SourceFormat::PerfData,
        writer: Some(writer_name.to_owned()),
        target: target(&source.features, &input),
        host: host.clone(),
        events,
    };
    let writer = origin.session(&request.output)?;
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
    for event in source
        .events
        .iter()
        .filter(|event| event.rate == Rate::READ && !event.is_dummy())
    {
        converter.note(format!(
            "{} is counted with another event's samples; its counts are not imported",
            event.name
        ));
    }
    let mut reader = RecordReader::new(file, source.records.clone());
    let mut sorter = RecordSorter::default();
    let events = Events {
        all: &source.events,
        index: &source.index,
        places: &places,
        build_ids: &source.features.build_ids,
    };
    loop {
        match reader.next() {
            Ok(Some(record)) if record.kind == FINISHED_ROUND => {
                // Compressed records come behind the end of their round.
                if !reader.is_compressed() {
                    sorter.end_round();
                }
            }
            Ok(Some(record)) if record.kind < FIRST_KIND => {
                let time = events.time(&record);
                sorter.add(time, record);
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(damage) => {
                let Damage { offset, reason } = damage;
                let note = format!(
                    "the source is damaged: offset {offset:#x}: {reason}; what follows is left out"
                );
                converter.note(note);
                break;
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
    converter.finish(input, &host, &source.features)
}
