//! The dex files that a session has of methods whose instructions were counted.
//!
//! The methods themselves are in the remap range. They are found in the dex files by their names.

use std::{
    collections::HashMap,
    io::{self, Read},
    ops::Range,
    path::Path,
};

use varid_recording::{DEX_ZIP, open_regular, remap::SLOT_SIZE};
use varid_symbolizer::{bytecode::MethodCode, container, dex::DexFile, java::ClassName};

use super::class_files::session_archive;
use crate::naming::JavaMethod;

/// The largest archive that is read.
const MAX_FILE: u64 = 1 << 30;

/// The dex files of a session, with their methods by name.
#[derive(Debug)]
pub struct CountedDex {
    files: Vec<KeptFile>,
    methods: HashMap<JavaMethod, Vec<KeptMethod>>,
}

#[derive(Debug)]
struct KeptFile {
    dex: DexFile<'static>,
    /// Its displayed path.
    place: String,
}

/// A method of a dex file.
#[derive(Debug)]
struct KeptMethod {
    /// Index of the file.
    file: usize,
    /// None if it is native or abstract.
    code: Option<MethodCode>,
}

/// A method that was found.
#[derive(Debug)]
pub struct FoundMethod<'d> {
    pub dex: &'d DexFile<'static>,
    /// None if it is native or abstract.
    pub code: Option<MethodCode>,
    /// The displayed path of the dex file.
    pub place: &'d str,
}

impl CountedDex {
    /// Opens the dex files of a session. None if it has none.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub fn open(session: &Path) -> Result<Option<Self>, String> {
        let Some(path) = session_archive(session, DEX_ZIP) else {
            return Ok(None);
        };
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let bytes = read(&path).map_err(|error| failed(&error))?;
        let place = path.display().to_string();
        let entries = container::dex_files(&place, &bytes).map_err(|error| failed(&error))?;
        let mut found = Self {
            files: Vec::new(),
            methods: HashMap::new(),
        };
        for entry in entries {
            let entry = entry.map_err(|error| failed(&error))?;
            let dex =
                DexFile::from_vec(entry.bytes.into_owned()).map_err(|error| failed(&error))?;
            found.add(KeptFile {
                dex,
                place: format!("{place}!{}", entry.name),
            });
        }
        Ok(Some(found))
    }

    /// Adds the methods of a file whose names are valid.
    fn add(&mut self, kept: KeptFile) {
        let file = self.files.len();
        for method in kept.dex.methods().flatten() {
            let id = &method.id;
            let (Ok(class), Ok(name), Ok(descriptor)) =
                (id.class_name(), id.name(), id.descriptor())
            else {
                continue;
            };
            let method = KeptMethod {
                file,
                code: method.method_code(),
            };
            let name = JavaMethod {
                class: ClassName::new(&class.replace('.', "/")).readable(),
                name,
                descriptor,
            };
            self.methods.entry(name).or_default().push(method);
        }
        self.files.push(kept);
    }

    /// Finds a method with this range of addresses in the remap range, which has an address for each code unit.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub fn find(&self, method: &JavaMethod, range: &Range<u64>) -> Result<FoundMethod<'_>, String> {
        let name = || format!("{}.{}", method.class, method.name);
        let size = range.end.saturating_sub(range.start);
        let named = self.methods.get(method).map_or(&[][..], Vec::as_slice);
        let mut same = named.iter().filter(|kept| addresses(kept) == size);
        let Some(found) = same.next() else {
            return Err(match named {
                [] => format!("no dex file of the program has {}", name()),
                _ => format!("{} has another length than was recorded", name()),
            });
        };
        if same.next().is_some() {
            return Err(format!("several methods {} have this length", name()));
        }
        let file = self.files.get(found.file).ok_or("no such file")?;
        Ok(FoundMethod {
            dex: &file.dex,
            code: found.code.clone(),
            place: &file.place,
        })
    }
}

/// Returns the number of addresses that a method has in the remap range. A caller's address is one behind that of its instruction.
fn addresses(method: &KeptMethod) -> u64 {
    let code = method.code.as_ref().map(|method| &method.code);
    let bytes = code.map_or(0, |code| code.end.saturating_sub(code.start));
    u64::from(bytes / 2).saturating_add(1).max(SLOT_SIZE)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(path)?;
    if file.metadata()?.len() > MAX_FILE {
        return Err(io::Error::other("it is larger than is read"));
    }
    file.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}
