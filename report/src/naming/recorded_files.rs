//! Finds recorded files on this machine.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use varid_recording::{Host, Manifest, RecordedFile, manifest::rfc3339};
use varid_symbolizer::{
    elf::{DebugFiles, ElfSource},
    hex,
};

use crate::{
    error::{Error, Result},
    name_options::NameOptions,
};

/// The places where recorded files and their debug information are searched.
#[derive(Debug)]
pub struct RecordedFiles {
    symfs: Option<PathBuf>,
    symbols: Vec<PathBuf>,
    /// Whether this is the machine of the recording, according to the manifest.
    recorded_here: bool,
    /// The start of the recording in RFC 3339.
    start: String,
    debug: DebugFiles,
    /// Recorded files without a build-id, by path.
    identified: HashMap<String, Vec<RecordedFile>>,
}

/// A candidate for a recorded file.
#[derive(Debug)]
struct Candidate<'f> {
    path: PathBuf,
    trust: Trust<'f>,
}

/// The reason to accept a file if the recording has no build-id for comparison.
#[derive(Debug, Clone, Copy)]
enum Trust<'f> {
    /// None: only an equal build-id is accepted.
    None,
    /// It is at the recorded path and has not changed since. If the recording identifies it, it must be one of these files.
    Place(&'f [RecordedFile]),
    /// It is in a place that the user names for the recorded files.
    UserGiven,
}

impl RecordedFiles {
    /// Applies `names` to a recording with this manifest.
    ///
    /// # Errors
    ///
    /// A folder or file cannot be read.
    pub fn new(names: &NameOptions, manifest: &Manifest) -> Result<Self> {
        for folder in names.symfs.iter().chain(&names.symbols) {
            fs::read_dir(folder).map_err(|source| Error::Folder {
                path: folder.clone(),
                source,
            })?;
        }
        if let Some(path) = &names.vmlinux {
            fs::File::open(path).map_err(|source| Error::File {
                path: path.clone(),
                source,
            })?;
        }
        let machine = &manifest.host.machine;
        let mut debug = DebugFiles::system();
        if let Some(root) = &names.symfs {
            debug = debug.with_root(root.join("usr/lib/debug"));
        }
        if let Some(root) = &names.kept {
            debug = debug.with_root(root);
        }
        let mut identified: HashMap<String, Vec<RecordedFile>> = HashMap::new();
        for file in &manifest.files {
            let of_path = identified.entry(file.path.clone()).or_default();
            of_path.push(file.clone());
        }
        Ok(Self {
            identified,
            symfs: names.symfs.clone(),
            symbols: names.symbols.clone(),
            recorded_here: !machine.is_empty() && *machine == Host::this_machine().machine,
            start: manifest.wall_start.clone(),
            debug: names.symbols.iter().fold(debug, DebugFiles::with_folder),
        })
    }

    /// Disables debuginfod servers, whose answers are only worth waiting for if lines were requested.
    pub fn of_this_machine(self) -> Self {
        let debug = self.debug.with_servers(false);
        Self { debug, ..self }
    }

    /// The sources of debug information.
    pub const fn debug(&self) -> &DebugFiles {
        &self.debug
    }

    /// Opens the file that was recorded with this path, or returns the reason why it is missing. An empty build-id is
    /// unknown. `kept` is the session's file with its symbols, which has less information than the file itself.
    pub fn open(
        &self,
        recorded: &Path,
        build_id: &[u8],
        kept: Option<&Path>,
    ) -> Result<ElfSource, String> {
        let path = RecordedPath::of(recorded);
        let identified = self.identified(recorded);
        // Prefer a copy that has more than debug information. The build-id does not distinguish them.
        let copy = self.copy(&path, build_id);
        let mut problem = String::new();
        for candidate in self.candidates(recorded, &path) {
            match self.verified(&candidate, &path, build_id) {
                Ok(source) => return Ok(better(source, copy)),
                // An existing file that does not match is a better explanation than a missing one.
                Err(why) if problem.is_empty() || candidate.path.exists() => problem = why,
                Err(_) => {}
            }
        }
        let is_one_file = identified.len() < 2;
        let kept = kept
            .filter(|_| is_one_file || !build_id.is_empty())
            .and_then(|path| self.open_own(path, build_id).ok());
        match (kept, copy) {
            (Some(kept), copy) => Ok(better(kept, copy)),
            (None, copy) => copy.ok_or(problem),
        }
    }

    /// Returns the recorded files without a build-id that had this path.
    fn identified(&self, recorded: &Path) -> &[RecordedFile] {
        let files = self.identified.get(recorded.to_string_lossy().as_ref());
        files.map_or(&[], Vec::as_slice)
    }

    /// Opens the file with this build-id among debug information.
    fn copy(&self, recorded: &RecordedPath<'_>, build_id: &[u8]) -> Option<ElfSource> {
        if build_id.is_empty() {
            return None;
        }
        let copy = Candidate {
            path: self.debug.file_with(build_id)?,
            trust: Trust::None,
        };
        self.verified(&copy, recorded, build_id).ok()
    }

    /// Returns the places of a recorded file, in the order of preference. `path`: the parts of `recorded`.
    fn candidates(&self, recorded: &Path, path: &RecordedPath<'_>) -> Vec<Candidate<'_>> {
        let symfs = self.symfs.as_deref();
        let symfs = symfs.and_then(|root| inside(root, path.file));
        let symfs = symfs.map(|path| Candidate {
            path,
            trust: Trust::UserGiven,
        });
        let same_path = Candidate {
            path: path.file.to_owned(),
            trust: match self.recorded_here && self.symfs.is_none() {
                true => Trust::Place(self.identified(recorded)),
                false => Trust::None,
            },
        };
        let below = path.file.strip_prefix("/").unwrap_or(path.file);
        // A library in an archive is also searched by its own name.
        let name = recorded.file_name().unwrap_or_default();
        let by_name = self.symbols.iter();
        let by_name = by_name.flat_map(|folder| [folder.join(below), folder.join(name)]);
        let by_name = by_name.map(|path| Candidate {
            path,
            trust: Trust::None,
        });
        let all = symfs.into_iter().chain([same_path]);
        all.chain(by_name).collect()
    }

    /// Opens a file of the session.
    pub fn open_own(&self, path: &Path, build_id: &[u8]) -> Result<ElfSource, String> {
        let own = Candidate {
            path: path.to_owned(),
            trust: Trust::UserGiven,
        };
        let recorded = RecordedPath {
            file: path,
            library: None,
        };
        self.verified(&own, &recorded, build_id)
    }

    /// Returns the reason why a file has no debug information, if there are details.
    pub fn why_no_debug(&self, build_id: &[u8]) -> Option<String> {
        let id = hex(build_id);
        let missing = self.debug.missing();
        let of_it = missing
            .into_iter()
            .find(|missing| missing.build_id.as_ref() == Some(&id));
        of_it?.reason
    }

    /// Opens the candidate if it is the recorded file, or contains the recorded library.
    fn verified(
        &self,
        candidate: &Candidate<'_>,
        recorded: &RecordedPath<'_>,
        build_id: &[u8],
    ) -> Result<ElfSource, String> {
        let path = &candidate.path;
        let file = fs::metadata(path).map_err(|error| {
            if path == recorded.file {
                error.to_string()
            } else {
                format!("{}: {error}", path.display())
            }
        })?;
        if !file.is_file() {
            return Err(format!("{} is not a regular file", path.display()));
        }
        let reason = match candidate.trust {
            _ if !build_id.is_empty() => None,
            Trust::None => Some("the recording is another one's"),
            Trust::Place([_, _, ..]) => Some("different files had this path while it was recorded"),
            Trust::Place([recorded]) if !recorded.is(&file) => Some("it is another file"),
            Trust::Place(_) if self.changed(&file) => {
                Some("it was changed after the recording started")
            }
            Trust::Place(_) | Trust::UserGiven => None,
        };
        if let Some(reason) = reason {
            return Err(format!(
                "{} of this machine is not used: {reason}, and there is no build-id to compare",
                path.display()
            ));
        }
        let source = match recorded.library {
            Some(library) => ElfSource::open_entry(path, library, &self.debug),
            None => ElfSource::open(path, &self.debug),
        }
        .map_err(|error| error.to_string())?;
        let found = source.symbols().build_id().unwrap_or_default();
        if build_id.is_empty() || found == build_id {
            return Ok(source);
        }
        let found = match found {
            [] => "none".to_owned(),
            found => hex(found),
        };
        Err(format!(
            "{} has build-id {found}, the recorded file had {}",
            path.display(),
            hex(build_id)
        ))
    }

    /// Returns true if a file was written, replaced or renamed after the start of the recording.
    fn changed(&self, file: &fs::Metadata) -> bool {
        let seconds = u64::try_from(file.ctime()).unwrap_or_default();
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        time.is_none_or(|time| rfc3339(time) > self.start)
    }
}

/// The parts of a recorded path.
#[derive(Debug, Clone, Copy)]
pub struct RecordedPath<'p> {
    /// The file.
    pub file: &'p Path,
    /// The name of a library in that archive (`base.apk!lib/x86_64/libx.so`).
    pub library: Option<&'p str>,
}

impl<'p> RecordedPath<'p> {
    /// Splits a recorded path.
    pub fn of(recorded: &'p Path) -> Self {
        let parts = recorded.to_str().and_then(|path| path.rsplit_once('!'));
        match parts {
            Some((archive, library)) if library.ends_with(".so") && !recorded.is_file() => Self {
                file: Path::new(archive),
                library: Some(library),
            },
            _ => Self {
                file: recorded,
                library: None,
            },
        }
    }
}

/// Returns the unstripped copy if there is one, else the file. A file with debug information only is not used: it does
/// not describe the mappings.
fn better(source: ElfSource, copy: Option<ElfSource>) -> ElfSource {
    let Some(copy) = copy else { return source };
    let (ours, theirs) = (source.symbols(), copy.symbols());
    let whole = theirs.function_count() >= ours.function_count();
    if whole && theirs.symbol_count() > ours.symbol_count() {
        copy
    } else {
        source
    }
}

/// A path with more links is treated as a cycle, as in path_resolution(7).
const MAX_LINKS: u32 = 40;

/// Resolves `path` in the file system of a machine at `root`. Links cannot leave the root, as after chroot(2). None if
/// they form a cycle.
pub fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let owned = |component: Component<'_>| component.as_os_str().to_owned();
    let mut rest: VecDeque<OsString> = path.components().map(owned).collect();
    // Relative to the root.
    let mut found = PathBuf::new();
    let mut links = 0u32;
    while let Some(next) = rest.pop_front() {
        match Path::new(&next).components().next() {
            Some(Component::RootDir) => found.clear(),
            Some(Component::ParentDir) => _ = found.pop(),
            Some(Component::Normal(name)) => {
                let Ok(link) = fs::read_link(root.join(&found).join(name)) else {
                    found.push(name);
                    continue;
                };
                links = links.checked_add(1).filter(|links| *links <= MAX_LINKS)?;
                for component in link.components().rev() {
                    rest.push_front(owned(component));
                }
            }
            _ => {}
        }
    }
    Some(root.join(found))
}
