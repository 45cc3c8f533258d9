//! What does a perf.data file of any origin say?
//!
//! Sources: `tools/perf/Documentation/perf.data-file-format.txt`, `tools/perf/util/header.c` and linux/perf_event.h of the kernel.
//!
//! | question | file |
//! |---|---|
//! | where is what in the file | `header` |
//! | what is wrong with it | `damage` |
//! | which events does it have, with which fields | `events`, `layout` |
//! | which event is a sample of | `event_index` |
//! | what does it say of its recording | `features` |
//! | which records follow one another, compressed or not | `records` |
//! | in which order were they | `sorter` |
//! | what does a record say | `record` |
//! | what does a sample say | `sample` |

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

pub use damage::Damage;
pub use event_index::EventIndex;
pub use events::SourceEvent;
pub use features::Features;
pub use layout::RecordLayout;
pub use record::{SourceMapping, SourceRecord};
pub use records::{RawRecord, RecordReader};
pub use sample::SourceSample;
pub use sorter::{MAX_HELD, RecordSorter};

use std::{fs::File, io::BufReader, ops::Range};

use header::{Header, bytes};

/// The head of a perf.data file: all but its records.
#[derive(Debug)]
pub struct PerfData {
    /// Its events, in order.
    pub events: Vec<SourceEvent>,
    /// What it says of its recording.
    pub features: Features,
    /// Where its records are.
    pub records: Range<u64>,
    /// What is incomplete, as sentences.
    pub notes: Vec<String>,
}

impl PerfData {
    /// Reads the head of a file of so many bytes.
    ///
    /// # Errors
    ///
    /// It is no perf.data of a little-endian machine, or its header does not fit it.
    pub fn read(file: &mut BufReader<File>, len: u64) -> Result<Self, Damage> {
        let header = Header::read(file, len)?;
        let mut notes = Vec::new();
        let mut events = Vec::new();
        let mut sections = Vec::new();
        if header.is_pipe {
            let mut reader = RecordReader::new(&mut *file, header.records.clone());
            while let Ok(Some(record)) = reader.next() {
                match record.kind {
                    events::HEADER_ATTR => {
                        events.push(SourceEvent::of_record(&record.body, record.offset)?);
                    }
                    features::HEADER_FEATURE => {
                        sections.extend(features::of_record(record.body, record.offset));
                    }
                    features::HEADER_BUILD_ID => {
                        sections.push(features::build_id_record(record.body, record.offset));
                    }
                    _ => {}
                }
            }
        } else {
            events = events::read(file, &header, len)?;
            for section in header::feature_sections(file, &header, len) {
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
        }
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
        let mut found = Features::default();
        for (bit, bytes, at) in sections {
            if let Err(damage) = found.add(bit, bytes, at, &mut events) {
                notes.push(format!(
                    "a part of what the file says of its recording cannot be read: offset {:#x}: {}",
                    damage.offset, damage.reason
                ));
            }
        }
        events::complete(&mut events, found.event_types());
        Ok(Self {
            events,
            features: found,
            records: header.records,
            notes,
        })
    }
}
