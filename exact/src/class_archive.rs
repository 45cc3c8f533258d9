//! The session's class files: those with methods that ran, so that their instructions can be shown without a class path.
//!
//! The archive has a class as `org/example/App.class`, by its readable name. Other classes with the same readable name, such as those of
//! lambdas or of several loaders, follow as `0x1040/org/example/App.class`, once for each method: the number is the method's offset in
//! its file of the remap range.

use std::collections::{HashMap, HashSet};

use sha1_smol::Sha1;
use varid_recording::{CLASSES_JAR, SessionWriter};
use varid_symbolizer::java::ClassName;

use crate::{error::Result, session_zip::SessionZip, tables::LoadedClass};

/// The most bytes of class files before compression. The JDK and an application server have a tenth of it.
const MAX_BYTES: usize = 512 << 20;
/// The most entries: as many as the archive's reader takes.
const MAX_ENTRIES: usize = (1 << 16) - 1;

/// Writes the archive.
#[derive(Debug)]
pub(crate) struct ClassArchive {
    archive: SessionZip,
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
        Self {
            archive: SessionZip::new(writer, CLASSES_JAR),
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
        self.archive.add(&entry, &class.bytes)
    }

    /// Completes the archive. Returns the number of class files that it has no room for.
    pub(crate) fn finish(self) -> Result<u64> {
        self.archive.finish()?;
        Ok(self.left_out)
    }
}
