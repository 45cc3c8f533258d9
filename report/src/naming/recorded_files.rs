//! Which file of this machine is the recorded one?

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

/// Where recorded files, and those with their debug information, are looked for.
#[derive(Debug)]
pub struct RecordedFiles {
    symfs: Option<PathBuf>,
    symbols: Vec<PathBuf>,
    /// Whether this is the machine of the recording, as far as the manifest tells.
    recorded_here: bool,
    /// When the recording started, in RFC 3339.
    start: String,
    debug: DebugFiles,
    /// The files without a build-id, by their paths.
    identified: HashMap<String, Vec<RecordedFile>>,
}

/// A file that may be the recorded one.
#[derive(Debug)]
struct Candidate<'f> {
    path: PathBuf,
    trust: Trust<'f>,
}

/// Why a file may be the recorded one if the recording has no build-id to compare.
#[derive(Debug, Clone, Copy)]
enum Trust<'f> {
    /// No reason: only an equal build-id makes it the recorded one.
    None,
    /// It is where it was recorded, and as it was then: one of these files, if the recording says which one it was.
    Place(&'f [RecordedFile]),
    /// It is where the user says that the recorded files are.
    UserGiven,
}

impl RecordedFiles {
    /// What `names` says, for a recording with that manifest.
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

    /// The same, but no server is asked for debug information: nobody waits for one who has not asked for lines.
    pub fn of_this_machine(self) -> Self {
        let debug = self.debug.with_servers(false);
        Self { debug, ..self }
    }

    /// Where debug information is looked for.
    pub const fn debug(&self) -> &DebugFiles {
        &self.debug
    }

    /// The file that had this path when it was recorded; or why there is none. An empty
    /// build-id is an unknown one. `kept`: the session's file with its symbols, which has less than the file itself.
    pub fn open(
        &self,
        recorded: &Path,
        build_id: &[u8],
        kept: Option<&Path>,
    ) -> Result<ElfSource, String> {
        // A library is looked for by its own name, too.
        let name = recorded.file_name().unwrap_or_default();
        let path_parts = in_archive(recorded);
        let identified = self.identified.get(recorded.to_string_lossy().as_ref());
        let (recorded, _) = path_parts;
        let copy = match build_id {
            [] => None,
            id => self.debug.file_with(id).map(|path| Candidate {
                path,
                trust: Trust::None,
            }),
        };
        let copy = copy.and_then(|copy| self.verified(&copy, path_parts, build_id).ok());
        let inside = |root| inside(root, recorded);
        let symfs = self
            .symfs
            .as_deref()
            .and_then(inside)
            .map(|path| Candidate {
                path,
                trust: Trust::UserGiven,
            });
        let same_path = Candidate {
            path: recorded.to_owned(),
            trust: if self.recorded_here && self.symfs.is_none() {
                Trust::Place(identified.map_or(&[], Vec::as_slice))
            } else {
                Trust::None
            },
        };
        // The likeliest copy that is no debug information alone: the build-id does not tell.
        let below = recorded.strip_prefix("/").unwrap_or(recorded);
        let by_name = self
            .symbols
            .iter()
            .flat_map(|folder| [folder.join(below), folder.join(name)])
            .map(|path| Candidate {
                path,
                trust: Trust::None,
            });
        let mut problem = String::new();
        for candidate in symfs.into_iter().chain([same_path]).chain(by_name) {
            match self.verified(&candidate, path_parts, build_id) {
                Ok(source) => return Ok(better(source, copy)),
                // A file that is there and is another one says more than one that is not there.
                Err(why) if problem.is_empty() || candidate.path.exists() => problem = why,
                Err(_) => {}
            }
        }
        let is_one_file = identified.is_none_or(|files| files.len() < 2);
        let kept = kept
            .filter(|_| is_one_file || !build_id.is_empty())
            .and_then(|path| self.open_own(path, build_id).ok());
        match (kept, copy) {
            (Some(kept), copy) => Ok(better(kept, copy)),
            (None, copy) => copy.ok_or(problem),
        }
    }

    /// A file of the session.
    pub fn open_own(&self, path: &Path, build_id: &[u8]) -> Result<ElfSource, String> {
        let own = Candidate {
            path: path.to_owned(),
            trust: Trust::UserGiven,
        };
        self.verified(&own, (path, None), build_id)
    }

    /// Why there is no debug information of a file, if there is more to say than that.
    pub fn why_no_debug(&self, build_id: &[u8]) -> Option<String> {
        let id = hex(build_id);
        let missing = self.debug.missing();
        let of_it = missing
            .into_iter()
            .find(|missing| missing.build_id.as_ref() == Some(&id));
        of_it?.reason
    }

    /// The candidate if it is the recorded file, or has the recorded library.
    fn verified(
        &self,
        candidate: &Candidate<'_>,
        (recorded, library): (&Path, Option<&str>),
        build_id: &[u8],
    ) -> Result<ElfSource, String> {
        let path = &candidate.path;
        let file = fs::metadata(path).map_err(|error| {
            if path == recorded {
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
        let source = match library {
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

    /// Whether a file was written, replaced or given its name after the recording started.
    fn changed(&self, file: &fs::Metadata) -> bool {
        let seconds = u64::try_from(file.ctime()).unwrap_or_default();
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        time.is_none_or(|time| rfc3339(time) > self.start)
    }
}

/// The file that a recorded path leads to and, of a library in an archive, `base.apk!lib/x86_64/libx.so`, its name there.
pub fn in_archive(recorded: &Path) -> (&Path, Option<&str>) {
    let parts = recorded.to_str().and_then(|path| path.rsplit_once('!'));
    match parts {
        Some((archive, library)) if library.ends_with(".so") && !recorded.is_file() => {
            (Path::new(archive), Some(library))
        }
        _ => (recorded, None),
    }
}

/// Of a file and a copy that has not been stripped, the copy. A file with debug information only
/// is no copy: it says nothing of what is mapped where.
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

/// More links than this in a path lead in circles, as path_resolution(7) has it.
const MAX_LINKS: u32 = 40;

/// `path` of the machine whose file system is at `root`, where its links lead: none leads out, as after chroot(2).
/// None if they lead in circles.
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
