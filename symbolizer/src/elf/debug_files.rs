//! Finds the debug information of a stripped library.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::parts::c_string;
use super::reader::ElfReader;
use crate::hex;
use crate::program::{self, AnswerLimits, NoAnswer};
use crate::regular::regular;

/// Limits for debuginfod-find. It prints a path. Downloading a large file takes long.
const ANSWER: AnswerLimits = AnswerLimits {
    bytes: 1 << 16,
    time: Duration::from_secs(3_600),
};

/// The folder in which distributions put debug files.
const SYSTEM_ROOT: &str = "/usr/lib/debug";

/// The most files and folders of a symbol folder that are read.
const MAX_FILES: usize = 1_000_000;

/// The maximum depth of folders in a symbol folder.
const MAX_DEPTH: usize = 32;

/// The places where separate debug files are searched, in this order. Within each kind, they are searched in the order in which they were
/// added.
///
/// 1. roots, like gdb's debug-file-directory: `ROOT/.build-id/ab/cdef.debug`, or `cdef` for the library itself, and the name in its
///    `.gnu_debuglink`, whose checksum must match;
/// 2. symbol folders: trees in which any file may be the library's unstripped copy or its debug file;
/// 3. debuginfod servers, through `debuginfod-find`, which shares the cache of gdb and perf.
///
/// A file with another build-id than the library's is never used. Clones share the results of searches.
#[derive(Debug, Clone, Default)]
pub struct DebugFiles(Arc<Places>);

#[derive(Debug, Default)]
struct Places {
    roots: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    servers: bool,
    /// The files in the symbol folders by build-id, read when first needed.
    by_build_id: OnceLock<HashMap<Vec<u8>, PathBuf>>,
    missing: Mutex<Vec<MissingDebug>>,
}

/// Debug information that was not found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MissingDebug {
    /// The library, or the file that another one's debug information refers to.
    pub file: String,
    /// Its build-id in hexadecimal digits. None if it has none.
    pub build_id: Option<String>,
    /// Why it was not found. None if no place has it.
    pub reason: Option<String>,
}

impl fmt::Display for MissingDebug {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            build_id,
            reason,
        } = self;
        match build_id {
            Some(id) => write!(out, "{file}: no debug information for build-id {id}")?,
            None => write!(
                out,
                "{file}: no debug information, nor a build-id to find it by"
            )?,
        }
        match reason {
            Some(reason) => write!(out, ": {reason}"),
            None => write!(
                out,
                ": install its debug package, add a folder with its unstripped copy, or set DEBUGINFOD_URLS"
            ),
        }
    }
}

impl DebugFiles {
    /// Searches nowhere: only the library's own debug information is used.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Searches where the system's debuggers do: `/usr/lib/debug`, and the debuginfod servers in the environment variable DEBUGINFOD_URLS.
    #[must_use]
    pub fn system() -> Self {
        let servers = std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty());
        Self::none().with_root(SYSTEM_ROOT).with_servers(servers)
    }

    /// Adds a root.
    #[must_use]
    pub fn with_root(self, root: impl Into<PathBuf>) -> Self {
        self.changed(|places| places.roots.push(root.into()))
    }

    /// Adds a symbol folder.
    #[must_use]
    pub fn with_folder(self, folder: impl Into<PathBuf>) -> Self {
        self.changed(|places| places.folders.push(folder.into()))
    }

    /// Sets whether the debuginfod servers in DEBUGINFOD_URLS are asked.
    #[must_use]
    pub fn with_servers(self, ask: bool) -> Self {
        self.changed(|places| places.servers = ask)
    }

    /// Returns the file with this build-id, which is the library itself or its unstripped copy: from the symbol folders, or
    /// `.build-id/ab/cdef` in a root.
    #[must_use]
    pub fn file_with(&self, build_id: &[u8]) -> Option<PathBuf> {
        let indexed = self
            .0
            .by_build_id
            .get_or_init(|| index(&self.0.folders))
            .get(build_id);
        indexed
            .cloned()
            .or_else(|| self.in_roots(build_id, "").find(|path| path.is_file()))
    }

    /// Candidates in the roots for the file of a build-id, with the `suffix` of its name.
    fn in_roots(&self, build_id: &[u8], suffix: &str) -> impl Iterator<Item = PathBuf> {
        let digits = hex(build_id);
        let name = digits
            .split_at_checked(2)
            .map(|(folder, file)| format!(".build-id/{folder}/{file}{suffix}"));
        let roots = self.0.roots.iter();
        name.into_iter()
            .flat_map(move |name| roots.clone().map(move |root| root.join(&name)))
    }

    /// The debug information that was not found so far.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingDebug> {
        self.0
            .missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn changed(self, change: impl FnOnce(&mut Places)) -> Self {
        let mut places = Places {
            roots: self.0.roots.clone(),
            folders: self.0.folders.clone(),
            servers: self.0.servers,
            ..Places::default()
        };
        change(&mut places);
        Self(Arc::new(places))
    }

    /// Returns the file with the debug information of `library`, which has none itself, or a file with only its symbols.
    pub(super) fn of(&self, library: &ElfReader<'_>) -> Option<ElfReader<'static>> {
        let by_id = library.build_id.as_deref().into_iter();
        let by_id = by_id.flat_map(|id| self.by_id(id));
        let by_link = std::iter::once_with(|| self.by_link(library)).flatten();
        let found = best(by_id.chain(by_link));
        self.or_from_servers(found, &library.name, library.build_id.as_deref())
    }

    /// Returns the supplementary file that `debug` refers to (`.gnu_debugaltlink`), if it does.
    pub(super) fn shared_by(&self, debug: &ElfReader<'_>) -> Option<ElfReader<'static>> {
        let link = debug.bytes_of(".gnu_debugaltlink").ok()?;
        let name = c_string(&link);
        let build_id = link.get(name.len().checked_add(1)?..)?;
        let name = String::from_utf8_lossy(name).into_owned();
        let found = beside(&debug.name, &name)
            .and_then(|path| with_id(&path, build_id))
            .or_else(|| best(self.by_id(build_id)));
        self.or_from_servers(found, &name, Some(build_id))
    }

    /// Candidates for the split DWARF file `name` that holds a unit's functions.
    pub(super) fn split(&self, library: &str, name: &Path) -> Vec<PathBuf> {
        let mut candidates = vec![name.to_owned()];
        if let Some(file) = name.file_name() {
            candidates.extend(beside(library, file));
            candidates.extend(self.0.folders.iter().map(|folder| folder.join(file)));
        }
        candidates
    }

    /// Records that debug information is missing.
    pub(super) fn note_missing(&self, file: &str, build_id: Option<&[u8]>, reason: Option<String>) {
        let missing = MissingDebug {
            file: file.to_owned(),
            build_id: build_id.map(hex),
            reason,
        };
        let mut all = self
            .0
            .missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&missing) {
            all.push(missing);
        }
    }

    /// The files with this build-id in the roots and the symbol folders.
    fn by_id(&self, build_id: &[u8]) -> impl Iterator<Item = ElfReader<'static>> {
        let in_folders = std::iter::once_with(|| self.file_with(build_id)).flatten();
        self.in_roots(build_id, ".debug")
            .chain(in_folders)
            .filter_map(|path| with_id(&path, build_id))
    }

    /// The file that the library's `.gnu_debuglink` names.
    fn by_link(&self, library: &ElfReader<'_>) -> Option<ElfReader<'static>> {
        let link = library.bytes_of(".gnu_debuglink").ok()?;
        let name = c_string(&link);
        let at = name.len().checked_add(1)?.checked_next_multiple_of(4)?;
        let sum = library.encoding().u32(&link, at)?;
        // Use only the file name, so that a path cannot lead out of the folders.
        let name = Path::new(std::str::from_utf8(name).ok()?).file_name()?;
        let folder = fs::canonicalize(&library.name).ok()?.parent()?.to_owned();
        let inside = folder.strip_prefix("/").ok()?;
        let mut candidates = vec![folder.join(name), folder.join(".debug").join(name)];
        candidates.extend(self.0.roots.iter().map(|root| root.join(inside).join(name)));
        best(candidates.into_iter().filter_map(|path| {
            let file = regular(&path)?;
            (crc32(&file)? == sum).then_some(())?;
            let image = ElfReader::from_file(file, path.to_str()?).ok()?;
            let other = image.build_id.is_some() && image.build_id != library.build_id;
            (!other).then_some(image)
        }))
    }

    /// Fetches a file from the servers if no debug information was found locally. If they do not have it either, it is recorded as missing.
    fn or_from_servers(
        &self,
        found: Option<ElfReader<'static>>,
        file: &str,
        build_id: Option<&[u8]>,
    ) -> Option<ElfReader<'static>> {
        if found.as_ref().is_some_and(has_debug) {
            return found;
        }
        let fetched = match build_id {
            Some(id) if self.0.servers => fetch(id),
            _ => Err(None),
        };
        match fetched {
            Ok(image) => Some(image),
            Err(reason) => {
                self.note_missing(file, build_id, reason);
                found
            }
        }
    }
}

/// What a file adds to a library's own names, from the worst to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Nothing,
    /// `.symtab` without debug information: an unstripped library, or Android's `.so.sym`.
    Symbols,
    DebugInformation,
}

impl Content {
    fn of(image: &ElfReader<'_>) -> Self {
        if has_debug(image) {
            return Self::DebugInformation;
        }
        let mut sections = image.sections.iter();
        match sections.any(|section| section.kind == object::elf::SHT_SYMTAB) {
            true => Self::Symbols,
            false => Self::Nothing,
        }
    }
}

/// Returns the first file with debug information, or else the first with symbols. Opens no more files than necessary.
fn best(files: impl Iterator<Item = ElfReader<'static>>) -> Option<ElfReader<'static>> {
    let mut with_symbols = None;
    for file in files {
        match Content::of(&file) {
            Content::DebugInformation => return Some(file),
            Content::Symbols => with_symbols = with_symbols.or(Some(file)),
            Content::Nothing => {}
        }
    }
    with_symbols
}

/// Returns true if a file has debug information.
pub(super) fn has_debug(image: &ElfReader<'_>) -> bool {
    image
        .section(".debug_info")
        .is_some_and(|section| section.kind != object::elf::SHT_NOBITS)
}

/// Opens an ELF file.
pub(super) fn open(path: &Path) -> Option<ElfReader<'static>> {
    ElfReader::from_file(regular(path)?, path.to_str()?).ok()
}

/// Opens an ELF file if it has this build-id.
fn with_id(path: &Path, build_id: &[u8]) -> Option<ElfReader<'static>> {
    open(path).filter(|image| image.build_id.as_deref() == Some(build_id))
}

/// The checksum of a file, as in `.gnu_debuglink`.
fn crc32(mut file: &File) -> Option<u32> {
    let mut sum = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(sum.finalize()),
            count => sum.update(buffer.get(..count)?),
        }
    }
}

/// Returns the path of `name` in the folder of a file.
fn beside(file: &str, name: impl AsRef<Path>) -> Option<PathBuf> {
    Some(fs::canonicalize(file).ok()?.parent()?.join(name))
}

/// Fetches a debug file with `debuginfod-find`. The error has a reason if it is not just that no server has the file.
fn fetch(build_id: &[u8]) -> Result<ElfReader<'static>, Option<String>> {
    let mut program = Command::new("debuginfod-find");
    program
        .args(["debuginfo", &hex(build_id)])
        .stdin(Stdio::null());
    let output = program::output(&mut program, ANSWER).map_err(|error| {
        Some(match error {
            NoAnswer::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "DEBUGINFOD_URLS is set, but there is no debuginfod-find: install the package \
                 debuginfod (elfutils-debuginfod-client, debuginfod-client)"
                    .to_owned()
            }
            NoAnswer::Io(error) => format!("cannot run debuginfod-find: {error}"),
            error => format!("debuginfod-find: {error}"),
        })
    })?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Some(format!("debuginfod-find: {}", stderr.trim())));
    }
    let path = String::from_utf8_lossy(&output.stdout);
    with_id(Path::new(path.trim_end()), build_id).ok_or(Some(
        "debuginfod-find gave a file with another build-id".to_owned(),
    ))
}

/// Finds the build-ids of the files in these folders. Among several files with the same build-id, the first one with the best content is
/// used.
fn index(folders: &[PathBuf]) -> HashMap<Vec<u8>, PathBuf> {
    let mut found: HashMap<Vec<u8>, (Content, PathBuf)> = HashMap::new();
    let mut open_folders: Vec<(usize, PathBuf)> = folders
        .iter()
        .rev()
        .map(|folder| (0, folder.clone()))
        .collect();
    let mut left = MAX_FILES;
    while let Some((depth, folder)) = open_folders.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .take(left)
            .collect();
        left = left.saturating_sub(entries.len());
        entries.sort();
        for path in entries {
            let Ok(kind) = fs::symlink_metadata(&path) else {
                continue;
            };
            if kind.is_dir() && depth < MAX_DEPTH {
                open_folders.push((depth.saturating_add(1), path));
            } else if let Some(image) = open(&path)
                && let Some(id) = image.build_id.clone()
            {
                let content = Content::of(&image);
                let better = |(known, _): &(Content, PathBuf)| content > *known;
                if found.get(&id).is_none_or(better) {
                    found.insert(id, (content, path));
                }
            }
        }
    }
    found
        .into_iter()
        .map(|(id, (_, path))| (id, path))
        .collect()
}
