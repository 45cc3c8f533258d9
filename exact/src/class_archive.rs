//! The session's class files: those with methods that ran, so that their instructions can be shown without a class path.
//!
//! The archive has a class as `org/example/App.class`, by its readable name. Other classes with the same readable name, such as those of
//! lambdas or of several loaders, follow as `0x1040/org/example/App.class`, once for each method: the number is the method's offset in
//! its file of the remap range.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};
use sha1_smol::Sha1;
use varid_recording::{CLASSES_JAR, SessionWriter};
use varid_symbolizer::java::ClassName;

use crate::{
    error::{Error, Result},
    tables::LoadedClass,
};

/// The most bytes of class files before compression. The JDK and an application server have a tenth of it.
const MAX_BYTES: usize = 512 << 20;
/// The most entries: as many as the archive's reader takes.
const MAX_ENTRIES: usize = (1 << 16) - 1;

/// Writes the archive. It exists as soon as there is a class.
#[derive(Debug)]
pub(crate) struct ClassArchive {
    path: PathBuf,
    archive: Option<ZipArchiveWriter<BufWriter<File>>>,
    /// The content of the class that has each readable name for itself.
    named: HashMap<String, [u8; 20]>,
    /// The methods whose class has been decided: their classes' readable names and their offsets.
    methods: HashSet<(String, u64)>,
    entries: usize,
    bytes: usize,
    /// The number of class files without room.
    left_out: u64,
}

impl ClassArchive {
    pub(crate) fn new(writer: &SessionWriter) -> Self {
        let name = Path::new(CLASSES_JAR).file_name().unwrap_or_default();
        Self {
            path: writer.symbols_here().join(name),
            archive: None,
            named: HashMap::new(),
            methods: HashSet::new(),
            entries: 0,
            bytes: 0,
            left_out: 0,
        }
    }

    /// Adds the class of a method, unless the archive has it. `offset` is that of the method in its file of the remap range.
    ///
    /// Equal methods of several processes have the same offset: the class of the first one is added.
    pub(crate) fn add(&mut self, class: &LoadedClass, offset: u64) -> Result<()> {
        let name = ClassName::new(&class.name).readable().replace('.', "/");
        if !self.methods.insert((name.clone(), offset)) {
            return Ok(());
        }
        let content = Sha1::from(&class.bytes).digest().bytes();
        let entry = match self.named.get(&name) {
            Some(known) if *known == content => return Ok(()),
            Some(_) => format!("{offset:#x}/{name}.class"),
            None => format!("{name}.class"),
        };
        let bytes = self.bytes.saturating_add(class.bytes.len());
        if bytes > MAX_BYTES || self.entries >= MAX_ENTRIES {
            self.left_out = self.left_out.saturating_add(1);
            return Ok(());
        }
        self.named.entry(name).or_insert(content);
        self.bytes = bytes;
        self.entries = self.entries.saturating_add(1);
        self.write(&entry, &class.bytes)
    }

    fn write(&mut self, entry: &str, bytes: &[u8]) -> Result<()> {
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

    /// Completes the archive. Returns the number of class files that it has no room for.
    pub(crate) fn finish(self) -> Result<u64> {
        if let Some(archive) = self.archive {
            archive
                .finish()
                .map_err(io::Error::other)
                .and_then(|mut file| file.flush())
                .map_err(Error::io("write", &self.path))?;
        }
        Ok(self.left_out)
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
