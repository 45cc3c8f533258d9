//! Finds the records of a batch that fit into a file that has reached its limit (RLIMIT_FSIZE).

use varid_model::Address;
use varid_model::perf::Header;

use super::tally::Tally;
use crate::{
    decode::{self, RawContent},
    event::SessionEvents,
    format::{RECORD_HEADER_SIZE, kind},
};

/// Returns the size of the first whole records of a batch that fit into `room` bytes.
pub fn fitting(batch: &[u8], room: usize) -> usize {
    let mut end = 0usize;
    while let Some(size) = size_at(batch, end)
        && let Some(next) = end.checked_add(size).filter(|next| *next <= room)
    {
        end = next;
    }
    end
}

/// Counts records as lost that had been counted as written.
pub fn lose(batch: &[u8], events: &SessionEvents, tally: &mut Tally) {
    let events: Vec<_> = events.iter().map(RawContent::of).collect();
    let (mut at, mut chains) = (0usize, Vec::<Address>::new());
    while let Some(size) = size_at(batch, at)
        && let Some(end) = at.checked_add(size)
        && let Some(record) = batch.get(at..end)
    {
        at = end;
        let parts = header(record).zip(record.get(RECORD_HEADER_SIZE..));
        let Some((header, body)) = parts else {
            continue;
        };
        if header.kind == kind::SAMPLE {
            chains.clear();
            if let Ok(sample) = decode::sample(header, body, &events, &mut chains) {
                let [kernel, user] = [sample.kernel, sample.user].map(|span| span.of(&chains));
                tally.retract(&sample.with_chains(kernel, user));
            }
        } else if let Ok(Some((_, record))) = decode::record(header, body) {
            tally.drop(&record);
        }
    }
}

fn size_at(batch: &[u8], at: usize) -> Option<usize> {
    let size = header(batch.get(at..)?)?.size;
    Some(usize::from(size)).filter(|size| *size >= RECORD_HEADER_SIZE)
}

fn header(record: &[u8]) -> Option<Header> {
    record.first_chunk().copied().map(Header::from_bytes)
}
