//! Finds the class file with a recorded method of Java.
//!
//! It is looked for in the session, in the folders and archives that the user names, and in those of the recorded class path. It must have the
//! class's name, and the method with the recorded descriptor, length and lines.

use std::{
    collections::HashSet,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use varid_recording::{CLASSES_JAR, remap::SLOT_SIZE};
use varid_symbolizer::{
    class::{ClassFile, CodeAttribute},
    java::ClassName,
};

use super::{annotation::AnnotateRequest, sources::Sources};
use crate::{
    error::Result,
    naming::{JavaMethod, OpenImage, inside},
    profile::Profile,
};

/// The most archives of a folder that a class path names with `*`.
const MAX_ARCHIVES: usize = 4096;

/// The folders and archives that may have class files, in order of precedence.
#[derive(Debug)]
pub struct ClassFiles {
    /// The class files that the session has.
    session: Sources,
    others: Sources,
}

/// A class file that was found.
#[derive(Debug)]
pub struct FoundClass {
    pub bytes: Vec<u8>,
    /// Its displayed path.
    pub place: String,
}

/// How the method of a class file compares with the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// It is another class.
    OtherClass,
    /// The class has no such method, or the method has other instructions or lines.
    OtherVersion,
    Same,
}

impl ClassFiles {
    /// Opens the folders and archives. Those of the recorded class path may not exist.
    ///
    /// # Errors
    ///
    /// One that the user names does not exist.
    pub fn open(profile: &Profile, request: &AnnotateRequest) -> Result<Self> {
        let names = &profile.options.names;
        let named = request.class_path.iter().flat_map(|path| expanded(path));
        let named = named.chain(request.sources.iter().cloned());
        let mut sources = Sources::open(&named.chain(names.symbols.clone()).collect::<Vec<_>>())?;
        let recorded = profile.recording.manifest.class_path.iter();
        let recorded = recorded.map(PathBuf::from).flat_map(|path| {
            let below = names.symfs.as_deref().and_then(|root| inside(root, &path));
            below.into_iter().chain([path])
        });
        sources.add_class_path(
            &recorded
                .flat_map(|path| expanded(&path))
                .collect::<Vec<_>>(),
        );
        Ok(Self {
            session: in_session(&profile.recording.session)?,
            others: sources,
        })
    }

    /// Finds the class file of a method with this range of addresses in an image.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub fn find(
        &self,
        image: &OpenImage<'_>,
        range: &Range<u64>,
        method: &JavaMethod,
    ) -> std::result::Result<FoundClass, String> {
        let file = format!("{}.class", method.class.replace('.', "/"));
        // The session has several classes with the same name by the method's address.
        let own = format!("{:#x}/{file}", range.start);
        let mut other = None;
        let mut is_it = |bytes: &[u8], place: &str| {
            let comparison = compare(bytes, method, |code| is_recorded(image, range, code));
            if comparison == Comparison::OtherVersion && other.is_none() {
                other = Some(place.to_owned());
            }
            comparison == Comparison::Same
        };
        let found = self.session.file(&own, &mut is_it);
        let found = found.or_else(|| self.session.file(&file, &mut is_it));
        let found = found.or_else(|| self.others.file(&file, &mut is_it));
        let class = &method.class;
        found
            .map(|file| FoundClass {
                bytes: file.bytes,
                place: file.place,
            })
            .ok_or_else(|| match other {
                Some(place) => format!(
                    "{place} has another version of {class} than was recorded; --class-path DIR or JAR with the recorded one"
                ),
                None => format!("no class file of {class} was found; --class-path DIR or JAR with it"),
            })
    }
}

/// Opens the archive of class files of a session.
fn in_session(session: &Path) -> Result<Sources> {
    Sources::open(session_archive(session, CLASSES_JAR).as_slice())
}

/// Returns the path of an archive of a session. None if the session has none. A link does not count as one.
pub(super) fn session_archive(session: &Path, name: &str) -> Option<PathBuf> {
    let archive = session.join(name);
    let is_file = fs::symlink_metadata(&archive).is_ok_and(|found| found.is_file());
    is_file.then_some(archive)
}

fn compare(
    bytes: &[u8],
    method: &JavaMethod,
    is_recorded: impl FnOnce(&CodeAttribute<'_>) -> bool,
) -> Comparison {
    let class = ClassFile::parse(bytes).ok();
    let Some(class) = class.filter(|class| ClassName::new(&class.name).readable() == method.class)
    else {
        return Comparison::OtherClass;
    };
    let Some(method) = class.method(&method.name, &method.descriptor) else {
        return Comparison::OtherVersion;
    };
    match &method.code {
        Some(code) if !is_recorded(code) => Comparison::OtherVersion,
        _ => Comparison::Same,
    }
}

/// Returns true if bytecode has the length and the lines of the method with this range of addresses.
fn is_recorded(image: &OpenImage<'_>, range: &Range<u64>, code: &CodeAttribute<'_>) -> bool {
    let length = code.bytecode.len() as u64;
    let size = range.end.saturating_sub(range.start);
    // A caller's address is one byte behind that of its instruction.
    if size != length.saturating_add(1).max(SLOT_SIZE) {
        return false;
    }
    // Of several lines of an instruction one is recorded.
    let lines: HashSet<(u16, u32)> = code
        .lines
        .iter()
        .map(|start| (start.bci, start.line.into()))
        .collect();
    code.lines.iter().all(|start| {
        let address = range.start.saturating_add(start.bci.into());
        let recorded = image.recorded_line(address);
        recorded.is_none_or(|line| lines.contains(&(start.bci, line)))
    })
}

/// Returns the entries that an entry of a class path stands for: `lib/*` is all archives of `lib`.
fn expanded(entry: &Path) -> Vec<PathBuf> {
    if entry.file_name().is_none_or(|name| name != "*") {
        return vec![entry.to_owned()];
    }
    let folder = entry.parent().unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_archive = |path: &PathBuf| {
        let extension = path.extension().and_then(|name| name.to_str());
        extension.is_some_and(|name| name.eq_ignore_ascii_case("jar"))
    };
    let mut archives: Vec<_> = paths.filter(is_archive).take(MAX_ARCHIVES).collect();
    archives.sort();
    archives
}
