//! How is a source read: from a file, from a pipe, compressed?

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::error::{Error, Result};

/// Most bytes of what is decompressed or read from a pipe: it is kept on the disk while it is imported.
const MAX_COPY: u64 = 64 << 30;

/// Most bytes that a zstd frame may make its reader keep.
const MAX_WINDOW: u64 = 128 << 20;

/// A source, which can be read at any offset.
#[derive(Debug)]
pub struct Input {
    /// What it is called in messages and in the session.
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) len: u64,
    /// When the file was last written, which is when its recording ended unless it was copied.
    pub(crate) modified: SystemTime,
}

impl Input {
    /// Opens a file, or standard input for `-`. What is compressed with gzip or zstd is decompressed into a file without a name.
    ///
    /// # Errors
    ///
    /// It cannot be read or decompressed, or there is no room for the copy.
    pub fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            let name = PathBuf::from("standard input");
            let file = copy(&mut io::stdin().lock(), &name)?;
            return Self::of_file(name, file, SystemTime::now());
        }
        let file = File::open(path).map_err(Error::io("open", path))?;
        let metadata = file.metadata().map_err(Error::io("read", path))?;
        if metadata.is_dir() {
            return Err(Error::io("read", path)(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a folder; a session needs no import",
            )));
        }
        let modified = metadata.modified().unwrap_or_else(|_| SystemTime::now());
        let file = match metadata.is_file() {
            true => file,
            false => copy(&mut { file }, path)?,
        };
        Self::of_file(path.to_owned(), file, modified)
    }

    /// A source that has been opened.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub fn of_file(path: PathBuf, mut file: File, modified: SystemTime) -> Result<Self> {
        let start = start_of(&mut file, 4).map_err(Error::io("read", &path))?;
        let file = match start.as_slice() {
            [0x1f, 0x8b, ..] => copy(&mut MultiGzDecoder::new(BufReader::new(file)), &path)?,
            [0x28, 0xb5, 0x2f, 0xfd] => {
                let invalid = |error| {
                    let error = io::Error::new(io::ErrorKind::InvalidData, format!("{error}"));
                    Error::io("decompress", &path)(error)
                };
                let source = BufReader::new(file);
                let mut decoder = StreamingDecoder::new_with_max_window_size(source, MAX_WINDOW)
                    .map_err(invalid)?;
                copy(&mut decoder, &path)?
            }
            _ => file,
        };
        let len = file.metadata().map_err(Error::io("read", &path))?.len();
        Ok(Self {
            path,
            file,
            len,
            modified,
        })
    }

    /// Its first bytes, at most so many.
    pub(crate) fn start(&mut self, bytes: u64) -> Result<Vec<u8>> {
        start_of(&mut self.file, bytes).map_err(Error::io("read", &self.path))
    }
}

/// The first bytes of a file, from which it is read again.
fn start_of(file: &mut File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.rewind()?;
    Read::by_ref(file).take(bytes).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(start)
}

/// A file without a name that holds what `source` gives.
fn copy(source: &mut dyn Read, path: &Path) -> Result<File> {
    let mut file = tempfile::tempfile().map_err(Error::io("make a copy of", path))?;
    let copied = io::copy(&mut source.take(MAX_COPY), &mut file)
        .map_err(Error::io("decompress or copy", path))?;
    if copied == MAX_COPY {
        return Err(Error::io("decompress or copy", path)(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is larger than 64 GB",
        )));
    }
    file.flush()
        .and_then(|()| file.rewind())
        .map_err(Error::io("make a copy of", path))?;
    Ok(file)
}
