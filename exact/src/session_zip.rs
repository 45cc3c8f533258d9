//! An archive of a session's symbols folder.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};
use varid_recording::SessionWriter;

use crate::error::{Error, Result};

/// Writes an archive. Its file exists as soon as there is an entry.
#[derive(Debug)]
pub(crate) struct SessionZip {
    path: PathBuf,
    archive: Option<ZipArchiveWriter<BufWriter<File>>>,
}

impl SessionZip {
    /// `path` is that of the archive, relative to the session folder.
    pub(crate) fn new(writer: &SessionWriter, path: &str) -> Self {
        let name = Path::new(path).file_name().unwrap_or_default();
        Self {
            path: writer.symbols_here().join(name),
            archive: None,
        }
    }

    /// Adds a compressed entry.
    pub(crate) fn add(&mut self, entry: &str, bytes: &[u8]) -> Result<()> {
        let archive = match &mut self.archive {
            Some(archive) => archive,
            new @ None => {
                let mut options = File::options();
                let options = options.write(true).create_new(true).mode(0o600);
                let file = options.open(&self.path);
                let file = file.map_err(Error::io("create", &self.path))?;
                new.insert(ZipArchiveWriter::new(BufWriter::new(file)))
            }
        };
        deflate(archive, entry, bytes).map_err(Error::io("write", &self.path))
    }

    /// Completes the archive.
    pub(crate) fn finish(self) -> Result<()> {
        let Some(archive) = self.archive else {
            return Ok(());
        };
        archive
            .finish()
            .map_err(io::Error::other)
            .and_then(|mut file| file.flush())
            .map_err(Error::io("write", &self.path))
    }
}

fn deflate(
    archive: &mut ZipArchiveWriter<BufWriter<File>>,
    entry: &str,
    bytes: &[u8],
) -> io::Result<()> {
    let file = archive.new_file(entry);
    let file = file.compression_method(CompressionMethod::DEFLATE);
    let (mut entry, config) = file.start().map_err(io::Error::other)?;
    let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
    writer.write_all(bytes)?;
    let (encoder, output) = writer.finish().map_err(io::Error::other)?;
    encoder.finish()?;
    entry.finish(output).map_err(io::Error::other)?;
    Ok(())
}
