//! Which file of this machine is the recorded one?

use std::{
    cell::OnceCell,
    collections::HashMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use varid_recording::Host;

use crate::{
    error::{Error, Result},
    names::Names,
};

/// Where recorded files are looked for.
#[derive(Debug)]
pub struct Files {
    symfs: Option<PathBuf>,
    folders: Vec<Folder>,
    /// Whether this is the machine of the recording, as far as the manifest tells.
    recorded_here: bool,
}

/// A file that may be the recorded one.
#[derive(Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is.
    pub path: PathBuf,
    /// Whether its place is enough if the recording has no build-id to compare.
    pub trusted: bool,
}

/// A folder of files with names known or not.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// The files below it by name, from the first time that one is looked for.
    by_name: OnceCell<HashMap<OsString, Vec<PathBuf>>>,
}

/// Files of a folder that are looked at: one given by mistake must not take forever.
const MAX_FILES: usize = 1 << 20;

impl Files {
    /// What `names` says, for a recording of `host`.
    ///
    /// # Errors
    ///
    /// A folder cannot be read.
    pub fn new(names: &Names, host: &Host) -> Result<Self> {
        for folder in names.symfs.iter().chain(&names.symbols) {
            fs::read_dir(folder).map_err(|source| Error::Folder {
                path: folder.clone(),
                source,
            })?;
        }
        let folder = |path: &PathBuf| Folder {
            path: path.clone(),
            by_name: OnceCell::new(),
        };
        let here = Host::this_machine();
        Ok(Self {
            symfs: names.symfs.clone(),
            folders: names.symbols.iter().map(folder).collect(),
            recorded_here: (&host.kernel, &host.arch) == (&here.kernel, &here.arch),
        })
    }

    /// What may be the file that had this path when it was recorded, the likeliest first. An
    /// empty build-id is an unknown one.
    pub fn candidates(&self, recorded: &Path, build_id: &[u8]) -> Vec<Candidate> {
        let mut found = Vec::new();
        let mut add = |path, trusted| found.push(Candidate { path, trusted });
        if let Some(root) = &self.symfs {
            add(below(root, recorded), true);
        }
        if !build_id.is_empty() {
            for folder in &self.folders {
                folder
                    .candidates(recorded, build_id)
                    .for_each(|path| add(path, false));
            }
        }
        add(
            recorded.to_owned(),
            self.recorded_here && self.symfs.is_none(),
        );
        found
    }
}

impl Folder {
    /// By build-id, as debuggers and perf lay folders out; then by path, then by name.
    fn candidates<'f>(
        &'f self,
        recorded: &'f Path,
        build_id: &[u8],
    ) -> impl Iterator<Item = PathBuf> + 'f {
        let id = hex(build_id);
        let (first, rest) = id.split_at_checked(2).unwrap_or_default();
        let by_build_id = [
            format!(".build-id/{first}/{rest}"),
            format!(".build-id/{first}/{rest}/elf"),
            format!("{first}/{rest}"),
            id,
        ];
        let by_name = || {
            let name = recorded.file_name()?;
            let index = self.by_name.get_or_init(|| index(&self.path));
            index.get(name)
        };
        by_build_id
            .into_iter()
            .map(|file| self.path.join(file))
            .filter(|path| path.is_file())
            .chain(by_name().into_iter().flatten().cloned())
    }
}

/// `path` of the machine whose file system is at `root`.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The files below a folder by name. Links to folders are not followed: they may lead round.
fn index(folder: &Path) -> HashMap<OsString, Vec<PathBuf>> {
    let mut found: HashMap<OsString, Vec<PathBuf>> = HashMap::new();
    let (mut folders, mut seen) = (vec![folder.to_owned()], 0usize);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            seen = seen.saturating_add(1);
            if seen > MAX_FILES {
                return found;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => found
                    .entry(entry.file_name())
                    .or_default()
                    .push(entry.path()),
                Err(_) => {}
            }
        }
    }
    // The order of a folder's entries is chance.
    found.values_mut().for_each(|paths| paths.sort());
    found
}

/// A build-id as tools write it.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
