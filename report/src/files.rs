//! Which file of this machine is the recorded one?

use std::{
    fs,
    path::{Path, PathBuf},
};

use varid_recording::Host;
use varid_symbolizer::elf::{DebugFiles, ElfSource};

use crate::{
    error::{Error, Result},
    names::Names,
};

/// Where recorded files, and those with their debug information, are looked for.
#[derive(Debug)]
pub struct Files {
    symfs: Option<PathBuf>,
    symbols: Vec<PathBuf>,
    /// Whether this is the machine of the recording, as far as the manifest tells.
    recorded_here: bool,
    debug: DebugFiles,
}

/// A file that may be the recorded one.
#[derive(Debug)]
struct Candidate {
    path: PathBuf,
    /// Whether its place is enough if the recording has no build-id to compare.
    trusted: bool,
}

impl Files {
    /// What `names` says, for a recording of `host`.
    ///
    /// # Errors
    ///
    /// A folder or file cannot be read.
    pub fn new(names: &Names, host: &Host) -> Result<Self> {
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
        let here = Host::this_machine();
        let mut debug = DebugFiles::system();
        if let Some(root) = &names.symfs {
            debug = debug.with_root(root.join("usr/lib/debug"));
        }
        Ok(Self {
            symfs: names.symfs.clone(),
            symbols: names.symbols.clone(),
            recorded_here: (&host.kernel, &host.arch) == (&here.kernel, &here.arch),
            debug: names.symbols.iter().fold(debug, DebugFiles::with_folder),
        })
    }

    /// Where debug information is looked for.
    pub const fn debug(&self) -> &DebugFiles {
        &self.debug
    }

    /// The file that had this path when it was recorded; or why it is not to be had. An empty
    /// build-id is an unknown one.
    pub fn open(&self, recorded: &Path, build_id: &[u8]) -> Result<ElfSource, String> {
        let copy = match build_id {
            [] => None,
            id => self.debug.file_with(id).map(|path| Candidate {
                path: path.to_owned(),
                trusted: false,
            }),
        };
        let copy = copy.and_then(|copy| self.verified(&copy, recorded, build_id).ok());
        let symfs = self.symfs.as_ref().map(|root| Candidate {
            path: below(root, recorded),
            trusted: true,
        });
        let same_path = Candidate {
            path: recorded.to_owned(),
            trusted: self.recorded_here && self.symfs.is_none(),
        };
        // The likeliest copy that is no debug information alone: the build-id does not tell.
        let name = recorded.file_name().unwrap_or_default();
        let by_name = self
            .symbols
            .iter()
            .flat_map(|folder| [below(folder, recorded), folder.join(name)])
            .map(|path| Candidate {
                path,
                trusted: false,
            });
        let mut problem = String::new();
        for candidate in symfs.into_iter().chain([same_path]).chain(by_name) {
            match self.verified(&candidate, recorded, build_id) {
                Ok(source) => return Ok(better(source, copy)),
                // A file that is there and is another one says more than one that is not there.
                Err(why) if problem.is_empty() || candidate.path.exists() => problem = why,
                Err(_) => {}
            }
        }
        copy.ok_or(problem)
    }

    /// A file of the session.
    pub fn open_own(&self, path: &Path, build_id: &[u8]) -> Result<ElfSource, String> {
        let own = Candidate {
            path: path.to_owned(),
            trusted: true,
        };
        self.verified(&own, path, build_id)
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

    /// The candidate if it is the recorded file.
    fn verified(
        &self,
        candidate: &Candidate,
        recorded: &Path,
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
        if build_id.is_empty() && !candidate.trusted {
            return Err(format!(
                "{} of this machine is not used: the recording is another one's and has no build-id of it",
                path.display()
            ));
        }
        let source = ElfSource::open(path, &self.debug).map_err(|error| error.to_string())?;
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

/// `path` of the machine whose file system is at `root`.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// A build-id as tools write it.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
