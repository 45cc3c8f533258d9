//! Reads perf.data files of any recorder.
//!
//! Sources: `tools/perf/Documentation/perf.data-file-format.txt`, `tools/perf/util/header.c` and linux/perf_event.h of the kernel.
//!
//! | question | file |
//! |---|---|
//! | where are the parts of the file | `header` |
//! | what is wrong with it | `damage` |
//! | which events does it have, with which fields | `events`, `layout` |
//! | which event does a sample belong to | `event_index` |
//! | how is the recording described | `features` |
//! | which tracepoints does it describe | `tracing_data` |
//! | how are the records read, compressed or not | `records` |
//! | how are they sorted by time | `sorter` |
//! | what is in a record | `record` |
//! | what is in a sample | `sample` |

mod damage;
mod event_index;
mod events;
mod features;
mod header;
mod layout;
mod record;
mod records;
mod sample;
mod sorter;
mod tracing_data;

pub use damage::Damage;
pub use event_index::EventIndex;
pub use events::SourceEvent;
pub use features::Features;
pub use header::is_perf_data;
pub use layout::RecordLayout;
pub use record::{SourceMapping, SourceRecord, SourceTask};
pub use records::{RawRecord, RecordReader};
pub use sample::{Calls, Count, Counts, SourceSample};
pub use sorter::{MAX_HELD, RecordSorter};

use std::{
    io::{Read, Seek},
    ops::Range,
};

use varid_model::perf::file::{HEADER_ATTR, HEADER_BUILD_ID, HEADER_FEATURE, HEADER_TRACING_DATA};

use events::EventList;
use features::Section;
use header::{Header, bytes};

/// The head of a perf.data file: everything but its records.
#[derive(Debug)]
pub struct PerfData {
    /// Its events, in order.
    pub events: Vec<SourceEvent>,
    /// Finds the event of a sample.
    pub index: EventIndex,
    /// The description of its recording.
    pub features: Features,
    /// The range of its records.
    pub records: Range<u64>,
    /// Notes on incomplete parts, as sentences.
    pub notes: Vec<String>,
}

impl PerfData {
    /// Reads the head of a file of `len` bytes.
    ///
    /// # Errors
    ///
    /// It is not perf.data of a little-endian machine, or its header is inconsistent with it.
    pub fn read(file: &mut (impl Read + Seek), len: u64) -> Result<Self, Damage> {
        let header = Header::read(file, len)?;
        let mut notes = Vec::new();
        let (mut events, sections) = match header.is_pipe {
            true => of_pipe(file, &header)?,
            false => (
                events::read(file, &header, len)?,
                sections(file, &header, len, &mut notes)?,
            ),
        };
        if events.is_empty() {
            return Err(Damage {
                offset: 0,
                reason: "it has no events",
            });
        }
        if header.is_unfinished {
            notes.push(
                "the file's recorder was killed: its records are read up to the end, build-ids and names are not there"
                    .to_owned(),
            );
        }
        let index = EventIndex::new(&events);
        let mut found = Features::default();
        for (bit, bytes, at) in sections {
            if let Err(damage) = found.add(bit, bytes, at, &mut events, &index) {
                notes.push(format!(
                    "a part of what the file says of its recording cannot be read: offset {:#x}: {}",
                    damage.offset, damage.reason
                ));
            }
        }
        let tracepoints = tracing_data::names(&found.tracing_data);
        events::complete(&mut events, found.event_types(), &tracepoints);
        Ok(Self {
            events,
            index,
            features: found,
            records: header.records,
            notes,
        })
    }
}

/// Reads the features, which follow the records.
fn sections(
    file: &mut (impl Read + Seek),
    header: &Header,
    len: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<Section>, Damage> {
    let mut sections = Vec::new();
    for section in header::feature_sections(file, header, len) {
        match section {
            Ok((bit, range)) if features::is_read(bit) => {
                sections.push((bit, bytes(file, &range)?, range.start));
            }
            Ok(_) => {}
            Err(damage) => {
                notes.push(format!(
                    "what the file says behind its records cannot be read: offset {:#x}: {}",
                    damage.offset, damage.reason
                ));
                break;
            }
        }
    }
    Ok(sections)
}

/// Reads the events and features from the records of a pipe.
fn of_pipe(
    file: &mut (impl Read + Seek),
    header: &Header,
) -> Result<(Vec<SourceEvent>, Vec<Section>), Damage> {
    let mut events = EventList::default();
    let mut sections = Vec::new();
    // Records may be compressed, but those of the description never are, so together they are not larger than the file.
    let mut room = header.records.end;
    let mut reader = RecordReader::new(file, header.records.clone());
    while let Ok(Some(record)) = reader.next() {
        let RawRecord { body, offset, .. } = record;
        let len = body.len() as u64;
        match record.kind {
            HEADER_ATTR => events.add_record(&body, offset)?,
            HEADER_FEATURE => {
                let section = features::of_record(body, offset);
                sections.extend(section.filter(|(bit, _, _)| features::is_read(*bit)));
            }
            HEADER_TRACING_DATA => sections.push(features::tracing_data(body, offset)),
            HEADER_BUILD_ID => sections.push(features::build_id_record(body, offset)),
            _ => continue,
        }
        room = room.checked_sub(len).ok_or(Damage {
            offset,
            reason: "what the file says of its recording is larger than the file",
        })?;
    }
    Ok((events.into_events(), sections))
}
