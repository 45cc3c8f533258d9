//! Finds the records in perf.data. The file is not trusted.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use crate::{
    error::{Error, Result},
    format::{
        ATTR_SIZE, HEADER_SIZE, MAGIC, MAX_EVENTS, OLD_SAMPLE_TYPE, SAMPLE_TYPE, SAMPLE_TYPE_AT,
    },
    regular::open_regular,
};

/// An open perf.data and the place of its records.
#[derive(Debug)]
pub struct DataSection {
    pub file: BufReader<File>,
    /// The offset of the first record.
    pub data: u64,
    /// The size of the records in bytes.
    pub size: u64,
}

/// Opens a perf.data of this many events.
pub fn open_data(path: &Path, events: usize) -> Result<DataSection> {
    let mut file = open_regular(path)
        .map(BufReader::new)
        .map_err(Error::io("open", path))?;
    let len = file
        .get_ref()
        .metadata()
        .map_err(Error::io("read", path))?
        .len();
    let (data, size) = data_section(&mut file, path, len, events)?;
    Ok(DataSection { file, data, size })
}

/// Checks the head of perf.data against the expected number of events. Returns the offset and size of the records.
pub fn data_section(
    file: &mut (impl Read + Seek),
    path: &Path,
    len: u64,
    events: usize,
) -> Result<(u64, u64)> {
    let wrong = |offset, reason| Error::Data {
        path: path.to_owned(),
        offset,
        reason,
    };
    let mut read = |bytes: &mut [u8], at: u64| {
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(bytes))
            .map_err(Error::io("read", path))
    };
    if len < HEADER_SIZE {
        return Err(wrong(len, "the file ends within perf.data's header"));
    }
    let mut words = [[0; 8]; 8];
    read(words.as_flattened_mut(), 0)?;
    let [magic, words @ ..] = words;
    if magic != MAGIC {
        return Err(wrong(0, "not a perf.data file (no PERFILE2)"));
    }
    let [_, file_attr, attrs, attrs_size, data, data_size, _] = words.map(u64::from_le_bytes);
    let events = events as u64;
    if events > MAX_EVENTS || file_attr.checked_mul(events) != Some(attrs_size) {
        return Err(wrong(32, "not the events that session.json tells of"));
    }
    if file_attr < ATTR_SIZE || attrs.checked_add(attrs_size).is_none_or(|end| end > len) {
        return Err(wrong(24, "the events' attributes lie outside the file"));
    }
    for event in 0..events {
        let at = attrs.saturating_add(event.saturating_mul(file_attr));
        let at = at.saturating_add(SAMPLE_TYPE_AT);
        let mut sample_type = [0; 8];
        read(&mut sample_type, at)?;
        if ![SAMPLE_TYPE, OLD_SAMPLE_TYPE].contains(&u64::from_le_bytes(sample_type)) {
            return Err(wrong(
                at,
                "not a recording of varid: it samples other fields",
            ));
        }
    }
    // In a cut file, the records that are there can be read.
    if data > len || data.checked_add(data_size).is_none() {
        return Err(wrong(40, "the records lie outside the file"));
    }
    Ok((data, data_size))
}
