//! Whose is a session's folder, and what may be in it?

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};

use crate::{
    PERF_DATA, RAW_DATA, SESSION_JSON, SYMBOLS, calls,
    error::{Error, Result},
};

/// The manifest while it is being replaced.
pub const SESSION_JSON_NEW: &str = "session.json.new";

/// perf.data until its header is written.
pub const PERF_DATA_NEW: &str = "perf.data.new";

/// Whether a session's folder may hold a file or folder of this name.
#[must_use]
pub fn may_hold(name: &str) -> bool {
    const OURS: [&str; 6] = [
        PERF_DATA,
        PERF_DATA_NEW,
        RAW_DATA,
        SESSION_JSON,
        SESSION_JSON_NEW,
        SYMBOLS,
    ];
    OURS.contains(&name) || calls::is_ours(name)
}

/// A session's folder, for one writer alone.
#[derive(Debug)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    _lock: Flock<File>,
}

impl Folder {
    /// Creates it with its parents, for this user only, or empties it of the session in it.
    pub fn take(path: PathBuf) -> Result<Self> {
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        folders
            .create(&path)
            .map_err(Error::io("create", path.clone()))?;
        own(&path)?;
        let lock = lock(&path)?;
        clear(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Adds an empty folder for symbols.
    pub fn add_symbols(&self) -> Result<()> {
        let symbols = self.path.join(SYMBOLS);
        DirBuilder::new()
            .mode(0o700)
            .create(&symbols)
            .map_err(Error::io("create", symbols))
    }
}

/// flock(2) on the folder, for this writer alone.
fn lock(dir: &Path) -> Result<Flock<File>> {
    let open = File::open(dir).map_err(Error::io("open", dir))?;
    Flock::lock(open, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => Error::Busy {
            path: dir.to_owned(),
        },
        other => Error::io("lock", dir)(other.into()),
    })
}

/// Makes sure that nobody else can change what is in the folder while it is written.
fn own(dir: &Path) -> Result<()> {
    let uid = |path: &Path| fs::metadata(path).map(|meta| (meta.uid(), meta.mode()));
    let (owner, mode) = uid(dir).map_err(Error::io("look at", dir))?;
    let (me, _) = uid(Path::new("/proc/self")).map_err(Error::io("look at", "/proc/self"))?;
    if owner != me || mode & 0o022 != 0 {
        return Err(Error::NotOurs {
            path: dir.to_owned(),
        });
    }
    Ok(())
}

/// Removes a session's files from a folder that holds nothing else.
fn clear(dir: &Path) -> Result<()> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io("list", dir))? {
        found.push(entry.map_err(Error::io("list", dir))?.file_name());
    }
    let foreign = found
        .iter()
        .find(|name| !name.to_str().is_some_and(may_hold));
    let is_session = found
        .iter()
        .any(|name| name == SESSION_JSON || name == SESSION_JSON_NEW);
    // A folder with symbols alone may be anybody's; a session has its manifest first, and loses it last.
    if let Some(name) = foreign.or_else(|| found.first().filter(|_| !is_session)) {
        return Err(Error::NotASession {
            path: dir.to_owned(),
            found: name.to_string_lossy().into_owned(),
        });
    }
    remove(&dir.join(PERF_DATA))?;
    remove(&dir.join(PERF_DATA_NEW))?;
    remove(&dir.join(RAW_DATA))?;
    let of_calls = |name: &&OsString| name.to_str().is_some_and(calls::is_ours);
    for name in found.iter().filter(of_calls) {
        remove(&dir.join(name))?;
    }
    let symbols = dir.join(SYMBOLS);
    match fs::remove_dir_all(&symbols) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io("remove", symbols)(error));
        }
        _ => {}
    }
    remove(&dir.join(SESSION_JSON))?;
    remove(&dir.join(SESSION_JSON_NEW))
}

/// Removes a file, if it is there.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Creates a file that was not there, for this user only, following no link.
pub fn create_new(path: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::io("create", path))
}
