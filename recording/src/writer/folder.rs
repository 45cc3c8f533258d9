//! Takes, fills and clears a session's folder, and checks its owner and content.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStringExt, fs::DirBuilderExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FlockOperation, Gid, Mode, OFlags, Uid},
    io::Errno,
};

use crate::{
    PERF_DATA, RAW_DATA, SESSION_JSON, SYMBOLS,
    call_order::CALL_ORDER_DATA,
    calls,
    compact::RECORDS_DATA,
    compiled_code::COMPILED_CODE_DATA,
    contexts::CONTEXTS_DATA,
    error::{Error, Result},
    manifest::Manifest,
};

/// The name of the manifest while it is being written.
pub const SESSION_JSON_NEW: &str = "session.json.new";

/// The name of perf.data until its header is written.
pub const PERF_DATA_NEW: &str = "perf.data.new";

/// The name of records.data until it is complete.
pub const RECORDS_DATA_NEW: &str = "records.data.new";

/// The name of a session that takes the place of the one around it when it is complete.
const SESSION_NEW: &str = "session.new";

/// Returns true if a session's folder may hold a file or folder of this name.
#[must_use]
pub fn may_hold(name: &str) -> bool {
    const OURS: [&str; 12] = [
        CALL_ORDER_DATA,
        COMPILED_CODE_DATA,
        CONTEXTS_DATA,
        PERF_DATA,
        PERF_DATA_NEW,
        RAW_DATA,
        RECORDS_DATA,
        RECORDS_DATA_NEW,
        SESSION_JSON,
        SESSION_JSON_NEW,
        SESSION_NEW,
        SYMBOLS,
    ];
    OURS.contains(&name) || calls::is_ours(name)
}

/// The owner of a session when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    user: Uid,
    group: Gid,
}

impl Owner {
    /// Creates the owner with these ids.
    #[must_use]
    pub fn new(user: u32, group: u32) -> Self {
        Self {
            user: Uid::from_raw(user),
            group: Gid::from_raw(group),
        }
    }
}

/// A session's folder, held by one writer alone.
///
/// Everything in it is reached through a descriptor of the folder itself, because the owner of a folder above may rename it meanwhile and
/// put another one, or a link, in its place. Only its owner can change what is in the folder, which is the writer until the session is
/// complete.
#[derive(Debug)]
pub struct Folder {
    /// The path of the folder when the session starts.
    pub path: PathBuf,
    dir: Lock,
    symbols: Option<OwnedFd>,
    provisional: Option<Provisional>,
}

/// A session that is removed when it is dropped before [`Folder::place`].
#[derive(Debug)]
struct Provisional {
    /// The folder of its files, in the folder of the session before it. `None` if there is no such session.
    beside: Option<OwnedFd>,
    /// True if the session's folder did not exist before.
    is_new: bool,
}

impl Folder {
    /// Creates the folder with its parents, for this user only, or removes the session in it. An earlier session may also be `owner`'s.
    pub fn take(path: &Path, owner: Option<Owner>) -> Result<Self> {
        let folder = Self::create(path, owner)?;
        folder.clear()?;
        Ok(folder)
    }

    /// Creates the folder as [`take`](Self::take) does, but a session in it stays until [`place`](Self::place). If it is dropped before
    /// that, nothing of the new session is left.
    pub fn take_to_replace(path: &Path) -> Result<Self> {
        let is_new = fs::symlink_metadata(path).is_err();
        let mut folder = Self::create(path, None)?;
        let has_session = folder.check()?.iter().any(|name| name == SESSION_JSON);
        let beside = match has_session {
            true => {
                // A writer that was killed may have left one.
                folder.remove_folder(SESSION_NEW)?;
                Some(folder.create_folder(SESSION_NEW)?)
            }
            false => {
                folder.clear()?;
                None
            }
        };
        folder.provisional = Some(Provisional { beside, is_new });
        Ok(folder)
    }

    /// Takes a folder that exists, with its content.
    pub fn take_existing(path: &Path) -> Result<Self> {
        let path: PathBuf = path.components().collect();
        let dir = Lock::on(open(&path, None)?, &path)?;
        Ok(Self::of(path, dir))
    }

    fn create(path: &Path, owner: Option<Owner>) -> Result<Self> {
        // The path must not end with a slash, because a link before the slash would be followed.
        let path: PathBuf = path.components().collect();
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        folders.create(&path).map_err(|error| match error.kind() {
            // A folder that exists already is not an error.
            io::ErrorKind::AlreadyExists => Error::NoFolder { path: path.clone() },
            _ => Error::io("create", path.clone())(error),
        })?;
        let dir = Lock::on(open(&path, owner)?, &path)?;
        Ok(Self::of(path, dir))
    }

    const fn of(path: PathBuf, dir: Lock) -> Self {
        Self {
            path,
            dir,
            symbols: None,
            provisional: None,
        }
    }

    /// Completes [`take_to_replace`](Self::take_to_replace): the new session takes the place of the old one, if there is one.
    pub fn place(&mut self) -> Result<()> {
        if let Some(Provisional {
            beside: Some(beside),
            ..
        }) = &self.provisional
        {
            let mut files =
                names(beside.as_fd()).map_err(|errno| self.error("list", SESSION_NEW, errno))?;
            // The manifest is the last file that a session gets.
            files.sort_by_key(|name| name == SESSION_JSON);
            self.clear_contents()?;
            self.unlink(SESSION_JSON)?;
            self.unlink(SESSION_JSON_NEW)?;
            for name in files {
                rustix::fs::renameat(beside, &name, self.dir.fd(), &name)
                    .map_err(|errno| self.error("replace", &name.to_string_lossy(), errno))?;
            }
            self.remove_folder(SESSION_NEW)?;
        }
        self.provisional = None;
        Ok(())
    }

    /// Adds an empty folder for symbols.
    pub fn add_symbols(&mut self) -> Result<()> {
        self.symbols = Some(self.create_folder(SYMBOLS)?);
        Ok(())
    }

    fn create_folder(&self, name: &str) -> Result<OwnedFd> {
        rustix::fs::mkdirat(self.fd(), name, Mode::RWXU)
            .and_then(|()| directory(self.fd(), Path::new(name)))
            .map_err(|errno| self.error("create", name, errno))
    }

    /// Returns the path of the folder for symbols, by its descriptor.
    pub fn symbols(&self) -> PathBuf {
        match &self.symbols {
            Some(folder) => by_descriptor(folder.as_fd()),
            None => by_descriptor(self.fd()).join(SYMBOLS),
        }
    }

    /// Creates a file that does not exist yet, for this user only. Links are not followed.
    pub fn create_new(&self, name: &str) -> Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::io::retry_on_intr(|| rustix::fs::openat(self.fd(), name, flags, mode))
            .map(File::from)
            .map_err(|errno| self.error("create", name, errno))
    }

    /// Removes a file if it exists.
    pub fn remove(&self, name: &str) -> Result<()> {
        unlink(self.fd(), name).map_err(|errno| self.error("remove", name, errno))
    }

    /// Renames a file and replaces the one that has the new name.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        rustix::fs::renameat(self.fd(), from, self.fd(), to)
            .map_err(|errno| self.error("replace", to, errno))
    }

    /// Replaces the session's manifest.
    pub fn save_manifest(&self, manifest: &Manifest) -> Result<()> {
        let new = || self.path.join(SESSION_JSON_NEW);
        let json = manifest.to_json().map_err(Error::io("write", new()))?;
        self.remove(SESSION_JSON_NEW)?;
        self.create_new(SESSION_JSON_NEW)?
            .write_all(&json)
            .map_err(Error::io("write", new()))?;
        self.rename(SESSION_JSON_NEW, SESSION_JSON)
    }

    /// Gives the session to another user. The folder comes last, as nothing may be written into it from then on.
    pub fn give_to(&self, owner: Owner) -> Result<()> {
        let (user, group) = (Some(owner.user), Some(owner.group));
        let give = |folder: BorrowedFd<'_>| give_contents(folder, owner);
        let symbols = self.symbols.as_ref().map_or(Ok(()), |it| give(it.as_fd()));
        symbols
            .and_then(|()| give(self.fd()))
            .and_then(|()| rustix::fs::fchown(self.fd(), user, group))
            .map_err(|errno| Error::io("give to its user", self.path.clone())(errno.into()))
    }

    /// Returns the folder of the session's files, wherever it is by now.
    fn fd(&self) -> BorrowedFd<'_> {
        let beside = self.provisional.as_ref().and_then(|it| it.beside.as_ref());
        beside.map_or(self.dir.fd(), AsFd::as_fd)
    }

    fn error(&self, action: &'static str, name: &str, errno: Errno) -> Error {
        Error::io(action, self.path.join(name))(errno.into())
    }

    /// Removes a session's files from a folder that holds nothing else.
    fn clear(&self) -> Result<()> {
        self.check()?;
        self.clear_contents()?;
        self.remove_folder(SESSION_NEW)?;
        self.unlink(SESSION_JSON)?;
        self.unlink(SESSION_JSON_NEW)
    }

    /// Returns the names in the folder. Fails if it holds anything other than a session.
    fn check(&self) -> Result<Vec<OsString>> {
        let found = names(self.dir.fd())
            .map_err(|errno| Error::io("list", self.path.clone())(errno.into()))?;
        let foreign = found
            .iter()
            .find(|name| !name.to_str().is_some_and(may_hold));
        let is_session = found
            .iter()
            .any(|name| name == SESSION_JSON || name == SESSION_JSON_NEW || name == SESSION_NEW);
        // A folder with only symbols may belong to anybody. A session gets its manifest first and loses it last.
        if let Some(name) = foreign.or_else(|| found.first().filter(|_| !is_session)) {
            return Err(Error::NotASession {
                path: self.path.clone(),
                found: name.to_string_lossy().into_owned(),
            });
        }
        Ok(found)
    }

    /// Removes everything of a session except its manifest.
    fn clear_contents(&self) -> Result<()> {
        let found = self.check()?;
        let of_calls = found.iter().filter_map(|name| name.to_str());
        let of_calls = of_calls.filter(|name| calls::is_ours(name));
        for name in [
            CALL_ORDER_DATA,
            COMPILED_CODE_DATA,
            CONTEXTS_DATA,
            PERF_DATA,
            PERF_DATA_NEW,
            RAW_DATA,
            RECORDS_DATA,
            RECORDS_DATA_NEW,
        ]
        .into_iter()
        .chain(of_calls)
        {
            self.unlink(name)?;
        }
        self.remove_folder(SYMBOLS)
    }

    /// Removes a file of the session that was there before, if it exists.
    fn unlink(&self, name: &str) -> Result<()> {
        unlink(self.dir.fd(), name).map_err(|errno| self.error("remove", name, errno))
    }

    /// Removes a folder in the session's own, with its content, if it exists.
    fn remove_folder(&self, name: &str) -> Result<()> {
        // This function follows no link, and it is the only one that removes the content of a folder.
        match fs::remove_dir_all(by_descriptor(self.dir.fd()).join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", self.path.join(name))(error))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(provisional) = self.provisional.take() else {
            return;
        };
        // The next writer removes what is left.
        let _ = match provisional.beside {
            Some(_) => self.remove_folder(SESSION_NEW),
            None => self.clear(),
        };
        if provisional.is_new {
            // Only an empty folder is removed.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Removes a session that has just been started, with its folder. A folder that is not a session or not this user's stays.
///
/// # Errors
///
/// The folder does not exist, holds something else, is being recorded, or cannot be removed.
pub fn remove_session(path: &Path) -> Result<()> {
    let folder = Folder::take_existing(path)?;
    folder.clear()?;
    // Only an empty folder is removed, whatever has the path by now.
    fs::remove_dir(&folder.path).map_err(Error::io("remove", &folder.path))
}

/// Gives the content of a folder to another user, and also that of the folders in it, which hold the kept files.
fn give_contents(folder: BorrowedFd<'_>, owner: Owner) -> rustix::io::Result<()> {
    let itself = AtFlags::SYMLINK_NOFOLLOW;
    let give = |folder: BorrowedFd<'_>, name: &OsString| {
        rustix::fs::chownat(folder, name, Some(owner.user), Some(owner.group), itself)
    };
    for name in names(folder)? {
        if let Ok(inside) = directory(folder, Path::new(&name)) {
            for name in names(inside.as_fd())? {
                give(inside.as_fd(), &name)?;
            }
        }
        give(folder, &name)?;
    }
    Ok(())
}

/// Returns the folder's path in /proc/self/fd, for functions that need a path.
fn by_descriptor(folder: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Removes a file if it exists.
fn unlink(folder: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Opens a folder. A link is not followed.
fn directory(above: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::io::retry_on_intr(|| rustix::fs::openat(above, path, flags, Mode::empty()))
}

/// Returns the names in a folder.
fn names(folder: BorrowedFd<'_>) -> rustix::io::Result<Vec<OsString>> {
    let names = Dir::read_from(folder)?.map(|entry| {
        let name = entry?.file_name().to_bytes().to_vec();
        Ok(OsString::from_vec(name))
    });
    let is_other = |name: &rustix::io::Result<OsString>| !matches!(name, Ok(name) if name == "." || name == "..");
    names.filter(is_other).collect()
}

/// Opens a folder whose content nobody else can change. Root takes over a folder of `owner`, who has it from an earlier session.
fn open(path: &Path, owner: Option<Owner>) -> Result<OwnedFd> {
    let dir = directory(rustix::fs::CWD, path).map_err(|errno| match errno {
        Errno::LOOP | Errno::NOTDIR => Error::NoFolder {
            path: path.to_owned(),
        },
        _ => Error::io("open", path)(errno.into()),
    })?;
    let failed = |action| move |errno: Errno| Error::io(action, path)(errno.into());
    let about = rustix::fs::fstat(&dir).map_err(failed("look at"))?;
    let me = rustix::process::geteuid();
    let is_mine = about.st_uid == me.as_raw();
    let is_users = |owner: Owner| owner.user.as_raw() == about.st_uid;
    if me.is_root() && !is_mine && owner.is_some_and(is_users) {
        rustix::fs::fchown(&dir, Some(me), None).map_err(failed("take"))?;
        rustix::fs::fchmod(&dir, Mode::RWXU).map_err(failed("take"))?;
    } else if !is_mine || Mode::from_raw_mode(about.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        return Err(Error::NotOurs {
            path: path.to_owned(),
        });
    }
    Ok(dir)
}

/// An exclusive flock(2) on a folder.
#[derive(Debug)]
struct Lock(OwnedFd);

impl Lock {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn on(dir: OwnedFd, path: &Path) -> Result<Self> {
        match rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self(dir)),
            Err(Errno::WOULDBLOCK) => Err(Error::Busy {
                path: path.to_owned(),
            }),
            Err(errno) => Err(Error::io("lock", path)(errno.into())),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A process that was started meanwhile may have the descriptor, and with it the lock.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_a_pipe_and_a_device_are_refused_even_with_a_slash_behind_them() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let fifo = dir.path().join("fifo");
        let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
        let null = PathBuf::from("/dev/null");
        for path in [link.clone(), link.join(""), fifo.join(""), fifo, null] {
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

    /// A session in `path` of which one file says `text`, as far as it is written.
    fn begun(path: &Path, text: &str) -> Folder {
        let mut folder = Folder::take_to_replace(path).unwrap();
        folder.create_new(SESSION_JSON).unwrap();
        folder.add_symbols().unwrap();
        fs::write(folder.symbols().join("kernel.sym"), text).unwrap();
        folder
    }

    fn kernel_names(path: &Path) -> String {
        fs::read_to_string(path.join(SYMBOLS).join("kernel.sym")).unwrap()
    }

    #[test]
    fn a_session_is_replaced_when_another_one_is_complete_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session");
        begun(&path, "first").place().unwrap();
        fs::write(path.join(PERF_DATA), "of the first").unwrap();
        let second = begun(&path, "second");
        assert_eq!(kernel_names(&path), "first");
        drop(second);
        assert_eq!(kernel_names(&path), "first");
        assert!(!path.join(SESSION_NEW).exists());
        begun(&path, "third").place().unwrap();
        assert_eq!(kernel_names(&path), "third");
        let mut found = names(fs::File::open(&path).unwrap().as_fd()).unwrap();
        found.sort();
        assert_eq!(found, [SESSION_JSON, SYMBOLS]);
    }

    #[test]
    fn nothing_is_left_of_a_session_that_is_not_placed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session");
        drop(begun(&path, "new"));
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        drop(begun(&path, "in a folder that was there"));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::write(path.join("mine"), "").unwrap();
        let error = Folder::take_to_replace(&path).unwrap_err();
        assert!(matches!(error, Error::NotASession { .. }), "{error}");
        assert!(path.join("mine").exists());
    }

    #[test]
    fn what_a_killed_writer_has_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session");
        begun(&path, "first").place().unwrap();
        fs::create_dir(path.join(SESSION_NEW)).unwrap();
        fs::write(path.join(SESSION_NEW).join(SESSION_JSON), "").unwrap();
        begun(&path, "second").place().unwrap();
        assert_eq!(kernel_names(&path), "second");
        // Killed while the new one took its place.
        fs::create_dir(path.join(SESSION_NEW)).unwrap();
        fs::remove_file(path.join(SESSION_JSON)).unwrap();
        drop(Folder::take(&path, None).unwrap());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn all_of_a_session_is_given_to_its_user() {
        use std::os::unix::fs::MetadataExt;
        if !rustix::process::geteuid().is_root() {
            eprintln!("not tried: only root gives files away");
            return;
        }
        const NOBODY: u32 = 65534;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session");
        let folder = begun(&path, "");
        let outside = dir.path().join("outside");
        fs::write(&outside, "").unwrap();
        fs::create_dir(folder.symbols().join("0a")).unwrap();
        fs::write(folder.symbols().join("0a/prog"), "").unwrap();
        std::os::unix::fs::symlink(&outside, folder.symbols().join("0a/link")).unwrap();
        folder.give_to(Owner::new(NOBODY, NOBODY)).unwrap();
        for file in [
            "",
            "session.json",
            "symbols",
            "symbols/0a",
            "symbols/0a/prog",
            "symbols/0a/link",
        ] {
            let about = fs::symlink_metadata(path.join(file)).unwrap();
            assert_eq!((about.uid(), about.gid()), (NOBODY, NOBODY), "{file}");
        }
        assert_eq!(fs::metadata(&outside).unwrap().uid(), 0);
    }
}
