//! Whose is a session's folder, and what may be in it?

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    libc,
    unistd::{Gid, Uid, fchown},
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

/// Whose a session is when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub user: Uid,
    /// The user's group.
    pub group: Gid,
}

/// A session's folder, for one writer alone.
///
/// Everything in it is reached through a descriptor of the folder itself: whoever owns a folder above may rename it meanwhile and put
/// another one, or a link, in its place. What is in the folder only its owner can change, who is the writer until the session is complete.
#[derive(Debug)]
pub struct Folder {
    /// Where it is when the session starts.
    pub path: PathBuf,
    dir: Flock<File>,
    symbols: Option<File>,
}

impl Folder {
    /// Creates it with its parents, for this user only, or empties it of the session in it. `owner`: whose an earlier session may be, too.
    pub fn take(path: &Path, owner: Option<Owner>) -> Result<Self> {
        // Without a slash at its end, behind which a link would be followed.
        let path: PathBuf = path.components().collect();
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        folders
            .create(&path)
            .map_err(Error::io("create", path.clone()))?;
        let dir = open(&path, owner)?;
        let dir = lock(dir, &path)?;
        let folder = Self {
            path,
            dir,
            symbols: None,
        };
        folder.clear()?;
        Ok(folder)
    }

    /// Adds an empty folder for symbols.
    pub fn add_symbols(&mut self) -> Result<()> {
        let symbols = self.here().join(SYMBOLS);
        let error = || Error::io("create", self.path.join(SYMBOLS));
        let folder = DirBuilder::new()
            .mode(0o700)
            .create(&symbols)
            .and_then(|()| directory(&symbols))
            .map_err(error())?;
        self.symbols = Some(folder);
        Ok(())
    }

    /// The folder for symbols, by its descriptor.
    pub fn symbols(&self) -> PathBuf {
        match &self.symbols {
            Some(folder) => by_descriptor(folder),
            None => self.here().join(SYMBOLS),
        }
    }

    /// Creates a file that was not there, for this user only, following no link.
    pub fn create_new(&self, name: &str) -> Result<File> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.here().join(name))
            .map_err(Error::io("create", self.path.join(name)))
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) -> Result<()> {
        match fs::remove_file(self.here().join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", self.path.join(name))(error))
            }
            _ => Ok(()),
        }
    }

    /// Gives a file another name, in the place of what has that.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        fs::rename(self.here().join(from), self.here().join(to))
            .map_err(Error::io("replace", self.path.join(to)))
    }

    /// Makes the session another user's, the folder last: nothing may be written into it from then on.
    pub fn give_to(&self, owner: Owner) -> Result<()> {
        for folder in [self.symbols(), self.here()] {
            let error = || Error::io("give to its user", self.path.clone());
            for entry in fs::read_dir(&folder).map_err(error())? {
                let path = entry.map_err(error())?.path();
                lchown(&path, owner).map_err(error())?;
            }
        }
        fchown(&*self.dir, Some(owner.user), Some(owner.group))
            .map_err(|errno| Error::io("give to its user", self.path.clone())(errno.into()))
    }

    /// The folder itself, wherever it is by now.
    fn here(&self) -> PathBuf {
        by_descriptor(&*self.dir)
    }

    /// Removes a session's files from a folder that holds nothing else.
    fn clear(&self) -> Result<()> {
        let mut found = Vec::new();
        let error = || Error::io("list", self.path.clone());
        for entry in fs::read_dir(self.here()).map_err(error())? {
            found.push(entry.map_err(error())?.file_name());
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
                path: self.path.clone(),
                found: name.to_string_lossy().into_owned(),
            });
        }
        let of_calls = found.iter().filter_map(|name| name.to_str());
        let of_calls = of_calls.filter(|name| calls::is_ours(name));
        for name in [PERF_DATA, PERF_DATA_NEW, RAW_DATA]
            .into_iter()
            .chain(of_calls)
        {
            self.remove(name)?;
        }
        match fs::remove_dir_all(self.here().join(SYMBOLS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", self.path.join(SYMBOLS))(error));
            }
            _ => {}
        }
        self.remove(SESSION_JSON)?;
        self.remove(SESSION_JSON_NEW)
    }
}

/// Removes a session that has just been begun, with its folder; what is no session, or not this user's, stays.
///
/// # Errors
///
/// It is not there, holds something else, is being recorded, or cannot be removed.
pub fn remove_session(path: &Path) -> Result<()> {
    let path: PathBuf = path.components().collect();
    let dir = lock(open(&path, None)?, &path)?;
    let folder = Folder {
        path,
        dir,
        symbols: None,
    };
    folder.clear()?;
    // Only an empty one goes, whatever has its name by now.
    fs::remove_dir(&folder.path).map_err(Error::io("remove", &folder.path))
}

fn by_descriptor(folder: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Opens a folder, not what a link leads to.
fn directory(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(path)
}

/// Opens a folder in which nobody else can change anything. Root takes that of `owner`, who had it from a session before.
fn open(path: &Path, owner: Option<Owner>) -> Result<File> {
    let dir = directory(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) => Error::NoFolder {
            path: path.to_owned(),
        },
        _ => Error::io("open", path)(error),
    })?;
    let about = dir.metadata().map_err(Error::io("look at", path))?;
    let me = nix::unistd::geteuid();
    let is_users = |owner: Owner| owner.user.as_raw() == about.uid();
    if me.is_root() && about.uid() != me.as_raw() && owner.is_some_and(is_users) {
        fchown(&dir, Some(me), None).map_err(|errno| Error::io("take", path)(errno.into()))?;
        dir.set_permissions(Permissions::from_mode(0o700))
            .map_err(Error::io("take", path))?;
    } else if about.uid() != me.as_raw() || about.mode() & 0o022 != 0 {
        return Err(Error::NotOurs {
            path: path.to_owned(),
        });
    }
    Ok(dir)
}

/// flock(2) on the folder, for this writer alone.
fn lock(dir: File, path: &Path) -> Result<Flock<File>> {
    Flock::lock(dir, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => Error::Busy {
            path: path.to_owned(),
        },
        other => Error::io("lock", path)(other.into()),
    })
}

/// Gives a file, or a link itself, to a user.
fn lchown(path: &Path, owner: Owner) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(owner.user.as_raw()), Some(owner.group.as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_refused_even_with_a_slash_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        for path in [link.clone(), link.join("")] {
            let error = Folder::take(&path, None).unwrap_err();
            assert!(matches!(error, Error::NoFolder { .. }), "{error}");
        }
    }

    #[test]
    fn what_is_written_after_the_folder_was_moved_is_written_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("session"), dir.path().join("moved"));
        let mut folder = Folder::take(&path, None).unwrap();
        folder.add_symbols().unwrap();
        fs::rename(&path, &moved).unwrap();
        fs::create_dir(&path).unwrap();
        folder.create_new(SESSION_JSON_NEW).unwrap();
        folder.rename(SESSION_JSON_NEW, SESSION_JSON).unwrap();
        fs::write(folder.symbols().join("kernel.sym"), "").unwrap();
        assert!(moved.join(SESSION_JSON).exists() && moved.join("symbols/kernel.sym").exists());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn a_session_is_removed_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session");
        let folder = Folder::take(&path, None).unwrap();
        folder.create_new(SESSION_JSON).unwrap();
        assert!(matches!(remove_session(&path), Err(Error::Busy { .. })));
        drop(folder);
        fs::write(path.join("mine"), "").unwrap();
        assert!(remove_session(&path).is_err() && path.join(SESSION_JSON).exists());
        fs::remove_file(path.join("mine")).unwrap();
        remove_session(&path).unwrap();
        assert!(!path.exists());
    }
}
