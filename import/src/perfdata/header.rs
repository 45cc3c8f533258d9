//! Reads the header of a perf.data file, which has the positions of its parts.

use std::{
    io::{Read, Seek, SeekFrom},
    ops::Range,
};

use varid_model::perf::file::HEADER_SIZE;

use super::damage::Damage;

/// The first word of a little-endian machine's file.
const MAGIC: [u8; 8] = *b"PERFILE2";
/// That of a big-endian one's.
const MAGIC_SWAPPED: [u8; 8] = *b"2ELIFREP";
/// `struct perf_pipe_file_header`.
const PIPE_HEADER: u64 = 16;
/// `struct perf_file_section`.
pub(super) const SECTION: u64 = 16;
/// Number of words of feature bits in the header.
const FEATURE_WORDS: usize = 4;

/// Returns true if what starts with these bytes is perf.data, though it may be of a machine whose files are not read.
#[must_use]
pub fn is_perf_data(start: &[u8]) -> bool {
    start.starts_with(&MAGIC) || start.starts_with(&MAGIC_SWAPPED)
}

/// The header of a perf.data file. All its ranges are within the file.
#[derive(Debug)]
pub(super) struct Header {
    /// The file only has records, some of which replace the header.
    pub(super) is_pipe: bool,
    /// The recorder ended before it could write the size of the records.
    pub(super) is_unfinished: bool,
    /// The events' attributes.
    pub(super) attrs: Range<u64>,
    /// Size of each attribute, including the section of its ids, in bytes.
    pub(super) attr_size: u64,
    /// The records.
    pub(super) records: Range<u64>,
    /// Bits of the features that follow the records.
    features: [u64; FEATURE_WORDS],
}

impl Header {
    /// The header of a file of `len` bytes that only has records.
    const fn of_pipe(len: u64) -> Self {
        Self {
            is_pipe: true,
            is_unfinished: false,
            attrs: 0..0,
            attr_size: 0,
            records: PIPE_HEADER..len,
            features: [0; FEATURE_WORDS],
        }
    }

    pub(super) fn read(file: &mut (impl Read + Seek), len: u64) -> Result<Self, Damage> {
        let damage = |offset, reason| Damage { offset, reason };
        let mut head = Vec::new();
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.take(HEADER_SIZE).read_to_end(&mut head))
            .map_err(|_| damage(0, "it cannot be read"))?;
        let (words, _) = head.as_chunks::<8>();
        let word = |place: usize| words.get(place).map(|word| u64::from_le_bytes(*word));
        check_magic(words.first())?;
        if word(1) == Some(PIPE_HEADER) {
            return Ok(Self::of_pipe(len));
        }
        let short = damage(len, "the file ends within its header");
        let (Some(attr_size), Some(attrs), Some(attrs_size)) = (word(2), word(3), word(4)) else {
            return Err(short);
        };
        let (Some(data), Some(data_size)) = (word(5), word(6)) else {
            return Err(short);
        };
        let mut features = [0; FEATURE_WORDS];
        for (place, bits) in features.iter_mut().enumerate() {
            *bits = word(place.saturating_add(9))
                .ok_or(damage(len, "the file ends within its header"))?;
        }
        let attrs = range(attrs, attrs_size, len)
            .ok_or(damage(24, "the events' attributes lie outside the file"))?;
        if data > len {
            return Err(damage(40, "the records lie outside the file"));
        }
        // The records of a truncated file are read as far as they go. If the recorder was killed, the size is 0.
        let end = match data_size {
            0 => len,
            size => data.saturating_add(size).min(len),
        };
        Ok(Self {
            is_pipe: false,
            is_unfinished: data_size == 0 && len > data,
            attrs,
            attr_size,
            records: data..end,
            features: match data_size {
                0 => [0; FEATURE_WORDS],
                _ => features,
            },
        })
    }
}

/// Checks the first word of the file.
fn check_magic(word: Option<&[u8; 8]>) -> Result<(), Damage> {
    let reason = match word {
        Some(&MAGIC) => return Ok(()),
        Some(&MAGIC_SWAPPED) => {
            "recorded on a big-endian machine, whose files are not read: 'perf script' there writes text that is"
        }
        _ => "not a perf.data file (no PERFILE2)",
    };
    Err(Damage { offset: 0, reason })
}

/// Returns the range at `start` with this size, if it is within the file.
pub(super) fn range(start: u64, size: u64, len: u64) -> Option<Range<u64>> {
    let end = start.checked_add(size).filter(|end| *end <= len)?;
    Some(start..end)
}

/// Returns each feature's bit and range. The list ends after an error.
pub(super) fn feature_sections(
    file: &mut (impl Read + Seek),
    header: &Header,
    len: u64,
) -> Vec<Result<(u32, Range<u64>), Damage>> {
    let bits = (0u32..).zip(header.features).flat_map(|(place, word)| {
        let first = place.saturating_mul(64);
        (0..64u32)
            .filter(move |bit| word.checked_shr(*bit).is_some_and(|rest| rest & 1 != 0))
            .map(move |bit| first.saturating_add(bit))
    });
    let mut sections = Vec::new();
    for (bit, place) in bits.zip(0u64..) {
        let at = header
            .records
            .end
            .saturating_add(place.saturating_mul(SECTION));
        let damage = |reason| Damage { offset: at, reason };
        let section = range(at, SECTION, len)
            .ok_or(damage("the file ends before the list of its features"))
            .and_then(|range| bytes(file, &range))
            .and_then(|bytes| {
                let (words, _) = bytes.as_chunks::<8>();
                let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
                let (start, size) = (words.next().unwrap_or(0), words.next().unwrap_or(0));
                range(start, size, len).ok_or(damage("a feature lies outside the file"))
            });
        let failed = section.is_err();
        sections.push(section.map(|range| (bit, range)));
        if failed {
            break;
        }
    }
    sections
}

/// Reads the bytes of a range, which must be within the file.
pub(super) fn bytes(file: &mut (impl Read + Seek), range: &Range<u64>) -> Result<Vec<u8>, Damage> {
    let mut bytes = Vec::new();
    let size = range.end.saturating_sub(range.start);
    file.seek(SeekFrom::Start(range.start))
        .and_then(|_| file.take(size).read_to_end(&mut bytes))
        .map_err(|_| Damage {
            offset: range.start,
            reason: "it cannot be read",
        })?;
    Ok(bytes)
}
