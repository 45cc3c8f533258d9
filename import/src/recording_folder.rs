//! Which files has a recording that is a folder: what `perf record --threads` and `--kcore` write?
//!
//! `data` is a perf.data file. Beside it, `data.0` and so on have the records of one reader of ring buffers each, without a header.

use std::{
    fs::File,
    io::{self, Seek},
    ops::Range,
    path::Path,
};

use varid_recording::{SESSION_JSON, open_regular};

use crate::error::{Error, Result};

/// The file with the header.
const DATA: &str = "data";
/// Most files of records: perf has one for a CPU at most.
const MAX_FILES: usize = 1 << 14;

/// The files of a folder as one: `data`, and where the records of the others lie behind it.
pub(crate) fn open(path: &Path, most: u64) -> Result<(File, Vec<Range<u64>>)> {
    let wrong = |message| {
        let error = io::Error::new(io::ErrorKind::IsADirectory, message);
        Err(Error::io("read", path)(error))
    };
    if path.join(SESSION_JSON).exists() {
        return wrong("it is a session, which needs no import");
    }
    let data = path.join(DATA);
    if !data.exists() {
        return wrong(
            "it is a folder without a file 'data', which those of 'perf record --threads' have",
        );
    }
    let mut first = open_regular(&data).map_err(Error::io("open", &data))?;
    let mut whole = None;
    let mut parts = Vec::new();
    for number in 0..MAX_FILES {
        let part = path.join(format!("{DATA}.{number}"));
        if !part.exists() {
            break;
        }
        let mut source = open_regular(&part).map_err(Error::io("open", &part))?;
        let whole = match &mut whole {
            Some(whole) => whole,
            None => whole.insert(copy_of(&mut first, &data)?),
        };
        let start = whole.stream_position().map_err(Error::io("copy", &part))?;
        let copied = io::copy(&mut source, whole).map_err(Error::io("copy", &part))?;
        let end = start.saturating_add(copied);
        if end > most {
            return wrong("its files are together larger than what is imported");
        }
        parts.push(start..end);
    }
    Ok((whole.unwrap_or(first), parts))
}

/// A file without a name that holds what `source` holds.
fn copy_of(source: &mut File, path: &Path) -> Result<File> {
    let mut copy = tempfile::tempfile().map_err(Error::io("make a copy of", path))?;
    io::copy(source, &mut copy).map_err(Error::io("make a copy of", path))?;
    Ok(copy)
}
