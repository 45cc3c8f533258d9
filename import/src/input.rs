//! Opens a source: from a file or a pipe, compressed or not.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use flate2::read::MultiGzDecoder;

use crate::{
    encoding::{Utf16, to_utf8},
    error::{Error, Result},
    recording_folder,
    zstd::{ZstdFrames, is_zstd},
};

/// The most bytes of a decompressed source, which is kept on the disk during the import.
const MAX_COPY: u64 = 64 << 30;
/// The most bytes that are read from a pipe.
const MAX_PIPE: u64 = 8 << 30;
/// Bytes that are read at once.
const READ_AHEAD: usize = 1 << 16;
/// A file may decompress to this size, or to [`MAX_RATIO`] times its own size if that is larger. Recordings and text have ratios of 5 to
/// 100.
const MAX_UNPACKED: u64 = 1 << 30;
const MAX_RATIO: u64 = 500;

/// A source that can be read at any offset.
#[derive(Debug)]
pub struct Input {
    /// Its name in messages and in the session.
    pub(crate) path: PathBuf,
    file: File,
    pub(crate) len: u64,
    /// Its size as it was given, which may be compressed.
    pub(crate) packed: u64,
    /// The ranges of the other files' records, if the recording is a folder.
    pub(crate) parts: Vec<Range<u64>>,
    /// A note about missing files of the recording, if there are any.
    pub(crate) missing: Option<String>,
    /// When the file was last written. That is the end of the recording, unless the file was copied.
    pub(crate) modified: SystemTime,
}

impl Input {
    /// Opens a file, or standard input for `-`. Content that is compressed with gzip or zstd is decompressed into a temporary file without
    /// a name.
    ///
    /// # Errors
    ///
    /// It cannot be read or decompressed, or there is no room for the copy.
    pub fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            let name = PathBuf::from("standard input");
            let file = copy(&mut io::stdin().lock(), &name, MAX_PIPE)?;
            return Self::of_file(name, file, SystemTime::now());
        }
        let file = File::open(path).map_err(Error::io("open", path))?;
        let metadata = file.metadata().map_err(Error::io("read", path))?;
        let modified = metadata.modified().unwrap_or_else(|_| SystemTime::now());
        if metadata.is_dir() {
            let folder = recording_folder::open(path, MAX_COPY)?;
            let first = Self::of_file(path.to_owned(), folder.file, folder.modified)?;
            return Ok(Self {
                parts: folder.parts,
                missing: folder.missing,
                ..first
            });
        }
        let file = match metadata.is_file() {
            true => file,
            false => copy(&mut { file }, path, MAX_PIPE)?,
        };
        Self::of_file(path.to_owned(), file, modified)
    }

    /// Makes a source from an open file.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn of_file(path: PathBuf, mut file: File, modified: SystemTime) -> Result<Self> {
        let start = start_of(&mut file, 4).map_err(Error::io("read", &path))?;
        let packed = file.metadata().map_err(Error::io("read", &path))?.len();
        let most = max_unpacked(packed);
        let file = match start.as_slice() {
            [0x1f, 0x8b, ..] => copy(&mut MultiGzDecoder::new(BufReader::new(file)), &path, most)?,
            start if is_zstd(start) => {
                copy(&mut ZstdFrames::new(BufReader::new(file)), &path, most)?
            }
            _ => file,
        };
        let file = of_utf8(file, &path)?;
        let len = file.metadata().map_err(Error::io("read", &path))?.len();
        Ok(Self {
            path,
            file,
            len,
            packed,
            parts: Vec::new(),
            missing: None,
            modified,
        })
    }

    /// Returns a reader from the start. Readers are independent of each other.
    pub(crate) fn reader(&self) -> Result<BufReader<FileReader>> {
        let file = self
            .file
            .try_clone()
            .map_err(Error::io("read", &self.path))?;
        let reader = FileReader { file, at: 0 };
        Ok(BufReader::with_capacity(READ_AHEAD, reader))
    }

    /// Returns true if it is a file in this folder.
    pub(crate) fn lies_in(&self, folder: &Path) -> bool {
        let file = fs::canonicalize(&self.path);
        let folder = fs::canonicalize(folder);
        matches!((file, folder), (Ok(file), Ok(folder)) if file.parent() == Some(&folder))
    }

    /// Reads its first bytes, at most `bytes` of them.
    pub(crate) fn start(&mut self, bytes: u64) -> Result<Vec<u8>> {
        start_of(&mut self.file, bytes).map_err(Error::io("read", &self.path))
    }
}

/// Returns the file, or a copy in UTF-8 if it is a text in UTF-16.
fn of_utf8(mut file: File, path: &Path) -> Result<File> {
    let start = start_of(&mut file, 4).map_err(Error::io("read", path))?;
    let Some(order) = Utf16::of_start(&start) else {
        return Ok(file);
    };
    let mut copy = tempfile::tempfile().map_err(Error::io("make a copy of", path))?;
    to_utf8(&mut (&file).take(MAX_COPY), order, &mut copy)
        .and_then(|()| copy.rewind())
        .map_err(Error::io("make a copy of", path))?;
    Ok(copy)
}

/// A reader of a file with its own position.
#[derive(Debug)]
pub(crate) struct FileReader {
    file: File,
    at: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Reads the first bytes of a file, then rewinds it.
fn start_of(file: &mut File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.rewind()?;
    Read::by_ref(file).take(bytes).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(start)
}

/// The largest size to which `packed` bytes may decompress.
fn max_unpacked(packed: u64) -> u64 {
    let most = packed.saturating_mul(MAX_RATIO);
    most.clamp(MAX_UNPACKED, MAX_COPY)
}

/// Copies `source` into a file without a name. It may have at most `most` bytes.
fn copy(source: &mut dyn Read, path: &Path, most: u64) -> Result<File> {
    let mut file = tempfile::tempfile().map_err(Error::io("make a copy of", path))?;
    let copied = io::copy(&mut source.take(most.saturating_add(1)), &mut file)
        .map_err(Error::io("decompress or copy", path))?;
    if copied > most {
        return Err(Error::io("decompress or copy", path)(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "it is larger than {most} bytes: a recording that is so large can be imported as a file that is not compressed"
            ),
        )));
    }
    file.flush()
        .and_then(|()| file.rewind())
        .map_err(Error::io("make a copy of", path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_it_may_be_is_refused() {
        assert_eq!(max_unpacked(1 << 10), 1 << 30);
        assert_eq!(max_unpacked(10 << 20), 5_000 << 20);
        assert_eq!(max_unpacked(u64::MAX), 64 << 30);
        let path = Path::new("source");
        let mut copied = copy(&mut &[1; 100][..], path, 100).unwrap();
        assert_eq!(start_of(&mut copied, 200).unwrap().len(), 100);
        let error = copy(&mut &[1; 101][..], path, 100).unwrap_err();
        assert!(
            error.to_string().contains("larger than 100 bytes"),
            "{error}"
        );
    }
}
