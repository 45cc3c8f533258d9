//! Which files has a recording that is a folder: what `perf record --threads` and `--kcore` write?
//!
//! `data` is a perf.data file. Beside it, `data.0` and so on have the records of one reader of ring buffers each, without a header.

use std::{
    fs::{self, File},
    io::{self, Read, Seek},
    ops::Range,
    path::Path,
    time::SystemTime,
};

use varid_recording::{SESSION_JSON, open_regular};

use crate::error::{Error, Result};

/// The file with the header.
const DATA: &str = "data";
/// Most files of records: perf has one for a CPU at most.
const MAX_FILES: u32 = 1 << 14;

/// A recording's files as one.
#[derive(Debug)]
pub(crate) struct RecordingFolder {
    /// `data`, with the records of the others behind it.
    pub(crate) file: File,
    /// Where the records of the others lie in it.
    pub(crate) parts: Vec<Range<u64>>,
    /// When the last of them was written.
    pub(crate) modified: SystemTime,
    /// Which of the others are not there, as a sentence.
    pub(crate) missing: Option<String>,
}

/// Reads the folder's files, which may have so many bytes together.
pub(crate) fn open(path: &Path, most: u64) -> Result<RecordingFolder> {
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
    let numbers = numbers(path).map_err(Error::io("list", path))?;
    if numbers.last().is_some_and(|last| *last >= MAX_FILES) {
        return wrong("it has more files than perf writes");
    }
    let mut first = open_regular(&data).map_err(Error::io("open", &data))?;
    let mut modified = written(&first);
    let mut whole = None;
    let mut parts = Vec::new();
    for number in &numbers {
        let part = path.join(format!("{DATA}.{number}"));
        let mut source = open_regular(&part).map_err(Error::io("open", &part))?;
        modified = modified.max(written(&source));
        let whole = match &mut whole {
            Some(whole) => whole,
            None => whole.insert(copy_of(&mut first, &data, most)?),
        };
        let start = whole.stream_position().map_err(Error::io("copy", &part))?;
        // One byte more tells that there are more.
        let room = most.saturating_sub(start).saturating_add(1);
        let copied = io::copy(&mut Read::by_ref(&mut source).take(room), whole)
            .map_err(Error::io("copy", &part))?;
        let end = start.saturating_add(copied);
        if end > most {
            return wrong("its files are together larger than what is imported");
        }
        parts.push(start..end);
    }
    Ok(RecordingFolder {
        file: whole.unwrap_or(first),
        parts,
        modified: modified.unwrap_or_else(SystemTime::now),
        missing: missing(&numbers),
    })
}

/// The numbers of the files of records, in order: as perf it takes all that are there.
fn numbers(path: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("data."));
        let number = number.and_then(|number| number.parse::<u32>().ok());
        // `data.01` is none of perf's.
        numbers.extend(number.filter(|number| *name == *format!("{DATA}.{number}")));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Which numbers before the last one are missing.
fn missing(numbers: &[u32]) -> Option<String> {
    let last = *numbers.last()?;
    let mut missing = (0..last).filter(|number| numbers.binary_search(number).is_err());
    let first = missing.next()?;
    let others = match missing.count() {
        0 => String::new(),
        others => format!(" and {others} others"),
    };
    Some(format!(
        "the folder has no file {DATA}.{first}{others}, though it has {DATA}.{last}: the records of those are missing"
    ))
}

fn written(file: &File) -> Option<SystemTime> {
    file.metadata().and_then(|about| about.modified()).ok()
}

/// A file without a name that holds what `source` holds, which may be so many bytes.
fn copy_of(source: &mut File, path: &Path, most: u64) -> Result<File> {
    let mut copy = tempfile::tempfile().map_err(Error::io("make a copy of", path))?;
    let copied = io::copy(&mut source.take(most.saturating_add(1)), &mut copy);
    match copied.map_err(Error::io("make a copy of", path))? {
        copied if copied > most => {
            let error = io::Error::from(io::ErrorKind::FileTooLarge);
            Err(Error::io("make a copy of", path)(error))
        }
        _ => Ok(copy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_together_too_large_are_not_copied_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["data", "data.0", "data.1"] {
            fs::write(folder.path().join(name), [0; 40]).unwrap();
        }
        assert_eq!(open(folder.path(), 120).unwrap().parts, [40..80, 80..120]);
        for most in [119, 79, 39] {
            let error = open(folder.path(), most).unwrap_err();
            assert!(error.to_string().contains("large"), "{error}");
        }
        fs::write(folder.path().join("data.99999"), "").unwrap();
        let error = open(folder.path(), 200).unwrap_err();
        assert!(error.to_string().contains("more files"), "{error}");
    }
}
