//! Opens a recording that is a folder, as `perf record --threads` and `--kcore` write.
//!
//! `data` is a perf.data file. `data.0` and so on beside it have the records of one reader of ring buffers each, without a header.

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
/// The most files with records. perf has at most one for each CPU.
const MAX_FILES: u32 = 1 << 14;

/// The files of a recording combined into one.
#[derive(Debug)]
pub(crate) struct RecordingFolder {
    /// `data`, with the records of the other files appended.
    pub(crate) file: File,
    /// The ranges of the other files' records in it.
    pub(crate) parts: Vec<Range<u64>>,
    /// The time of the last write to any of them.
    pub(crate) modified: SystemTime,
    /// A note on missing files, if there are any.
    pub(crate) missing: Option<String>,
}

/// Reads the folder's files, which may have at most `most` bytes together.
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
        // Try to copy one more byte, to detect that the limit is exceeded.
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

/// The numbers of the files with records, in order. As in perf, all existing files are used.
fn numbers(path: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("data."));
        let number = number.and_then(|number| number.parse::<u32>().ok());
        // perf does not write `data.01`.
        numbers.extend(number.filter(|number| *name == *format!("{DATA}.{number}")));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns a note if numbers before the last one are missing.
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

/// Copies `source` into a file without a name. It may have at most `most` bytes.
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
