//! Where sessions, the control socket and tunnels live.

use crate::control::ControlError;
use crate::session::{TargetSpec, with_commas};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use varid_recording::Owner;
use varid_recording::SESSION_JSON;
use varid_recording::manifest::rfc3339;
#[cfg(feature = "host")]
use varid_recording::{PERF_DATA, RAW_DATA};

/// A folder that everything of varid's goes below, instead of the user's own places.
pub const HOME: &str = "VARID_HOME";

/// Among the sessions, the link to the one that was recorded last.
pub const LAST: &str = "last";

/// On a device there is this folder; as a rule it belongs to adb's shell.
const DEVICE: &str = "/data/local/tmp";

/// Where varid keeps things on a device, as `varid --adb` does. Root does not use the first where it is below another user's
/// folder: whoever that is could put another one there.
pub const DEVICE_HOMES: [&str; 2] = ["/data/local/tmp/varid", "/data/local/varid"];

/// The folder of all sessions.
pub fn sessions() -> PathBuf {
    match place() {
        Place::Home(home) => home.join("sessions"),
        Place::Root => PathBuf::from("/var/lib/varid"),
        Place::User => variable("XDG_STATE_HOME")
            .unwrap_or_else(|| user_home().join(".local/state"))
            .join("varid"),
    }
}

/// The folder of the control socket and the daemon's log.
pub fn runtime() -> PathBuf {
    match place() {
        Place::Home(home) => home.join("run"),
        Place::Root => PathBuf::from("/run/varid"),
        Place::User => variable("XDG_RUNTIME_DIR")
            .map_or_else(|| sessions().join("run"), |runtime| runtime.join("varid")),
    }
}

/// The folder of what can be made anew: this user's own.
pub fn cache() -> PathBuf {
    match place() {
        Place::Home(home) => home.join("cache"),
        Place::Root => PathBuf::from("/var/cache/varid"),
        Place::User => variable("XDG_CACHE_HOME")
            .unwrap_or_else(|| user_home().join(".cache"))
            .join("varid"),
    }
}

/// The folder of libraries that were pulled from devices, by build-id.
#[cfg(feature = "host")]
pub fn device_symbols() -> PathBuf {
    cache().join("device-symbols")
}

/// The daemon's control socket.
pub fn socket() -> PathBuf {
    runtime().join("control.sock")
}

/// What a daemon that `start` brought up has to say.
pub fn log() -> PathBuf {
    runtime().join("daemon.log")
}

enum Place {
    Home(PathBuf),
    Root,
    User,
}

fn place() -> Place {
    if let Some(home) = own_home() {
        return Place::Home(home);
    }
    let is_root = nix::unistd::geteuid().is_root();
    if let Ok(device) = std::fs::symlink_metadata(DEVICE)
        && device.is_dir()
    {
        let [shells, roots] = DEVICE_HOMES;
        let home = if is_root && device.uid() != 0 {
            roots
        } else {
            shells
        };
        return Place::Home(PathBuf::from(home));
    }
    if is_root { Place::Root } else { Place::User }
}

/// [`HOME`], absolute, if it is set.
pub fn own_home() -> Option<PathBuf> {
    let home = std::env::var_os(HOME).filter(|home| !home.is_empty())?;
    std::path::absolute(home).ok()
}

/// An absolute path in the environment; others are ignored, as the XDG specification says.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// The user's home: where the environment does not say, what the system knows. Never a folder that others may have made.
fn user_home() -> PathBuf {
    let named = std::env::var_os("HOME").filter(|home| !home.is_empty());
    named.map(PathBuf::from).unwrap_or_else(|| {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid());
        user.ok()
            .flatten()
            .map_or_else(|| PathBuf::from("/nonexistent"), |user| user.dir)
    })
}

/// Makes the runtime folder, and sees to it that it is this user's and nobody else can enter.
pub fn private_runtime() -> Result<(), ControlError> {
    let path = runtime();
    make_private(&path).map_err(ControlError::io("create", &path))?;
    let user = nix::unistd::geteuid().as_raw();
    let owned = |metadata: std::fs::Metadata| match metadata.uid() {
        owner if owner == user => Ok(metadata),
        owner => Err(ControlError::Folder {
            path: path.clone(),
            owner,
            user,
        }),
    };
    // Looked at before it is opened: another user's cannot be.
    std::fs::symlink_metadata(&path)
        .map_err(ControlError::io("read", &path))
        .and_then(owned)?;
    let folder = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(&path)
        .map_err(ControlError::io("open", &path))?;
    let metadata = folder
        .metadata()
        .map_err(ControlError::io("read", &path))
        .and_then(owned)?;
    if metadata.mode() & 0o077 != 0 {
        folder
            .set_permissions(std::fs::Permissions::from_mode(0o700))
            .map_err(ControlError::io("close to others", &path))?;
    }
    Ok(())
}

/// Makes a folder and those above it, for this user only.
pub fn make_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// The name of a new session: the moment and the target.
pub fn session_name(target: &TargetSpec) -> String {
    let what = match target {
        TargetSpec::Named(_, names) => names.clone(),
        TargetSpec::Pids(pids) => format!("pid{}", with_commas(pids)),
        TargetSpec::All => "all".to_owned(),
        TargetSpec::Command(_, line) => {
            let program = line.split_whitespace().next().unwrap_or_default();
            program.rsplit('/').next().unwrap_or_default().to_owned()
        }
    };
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let moment: String = rfc3339(SystemTime::now())
        .chars()
        .filter(char::is_ascii_digit)
        .take(14)
        .collect();
    let what: String = what.chars().map(safe).take(64).collect();
    format!("{moment}-{what}")
}

/// A folder for a new session, named by the moment and the target, and free.
pub fn new_session(target: &TargetSpec) -> io::Result<PathBuf> {
    let stem = session_name(target);
    let sessions = sessions();
    make_private(&sessions)?;
    let made = free(&stem, |name| {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(sessions.join(name))
    });
    made.map(|name| sessions.join(name)).map_err(|error| {
        let path = sessions.join(stem);
        io::Error::new(
            error.kind(),
            format!("cannot create {}: {error}", path.display()),
        )
    })
}

/// Makes something by a name that is free: this, or with a number behind it. The name.
fn free(stem: &str, make: impl Fn(&str) -> io::Result<()>) -> io::Result<String> {
    let mut name = stem.to_owned();
    for number in 1.. {
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| name),
        }
        name = format!("{stem}.{number}");
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The user who had sudo start this process as root.
pub fn sudo_user() -> Option<Owner> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    nix::unistd::geteuid().is_root().then_some(())?;
    let (user, group) = (number("SUDO_UID")?, number("SUDO_GID")?);
    Some(Owner {
        user: user.into(),
        group: group.into(),
    })
}

/// Makes a session that is recorded elsewhere known among the sessions, by a link; those whose sessions are gone are removed.
pub fn list_elsewhere(session: &Path, target: &TargetSpec) -> io::Result<()> {
    let sessions = sessions();
    make_private(&sessions)?;
    let session = std::fs::canonicalize(session)?;
    if session.parent() == Some(&std::fs::canonicalize(&sessions)?) {
        return Ok(());
    }
    for entry in std::fs::read_dir(&sessions)?.flatten() {
        let Ok(linked) = std::fs::read_link(entry.path()) else {
            continue;
        };
        if entry.file_name() != LAST && (linked == session || !linked.join(SESSION_JSON).exists()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    free(&session_name(target), |name| {
        std::os::unix::fs::symlink(&session, sessions.join(name))
    })
    .map(drop)
}

/// The session that was recorded last is the one that a report is about.
pub fn set_last(session: &Path) -> io::Result<()> {
    let link = sessions().join(LAST);
    make_private(&sessions())?;
    let new = sessions().join(format!(".last.{}", std::process::id()));
    std::os::unix::fs::symlink(std::path::absolute(session)?, &new)?;
    std::fs::rename(&new, link)
}

/// The folder of a session that was named by its folder, a file in it, or its name among the sessions.
#[cfg(feature = "host")]
pub fn session(named: &Path) -> PathBuf {
    let is_part = [PERF_DATA, RAW_DATA, SESSION_JSON]
        .iter()
        .any(|part| named.ends_with(part));
    if is_part && named.is_file() {
        // As perf takes it.
        let folder = named.parent().unwrap_or(Path::new(""));
        Path::new(".").join(folder)
    } else if named.exists() {
        named.to_owned()
    } else {
        sessions().join(named)
    }
}

/// The last session, if there is one.
#[cfg(feature = "host")]
pub fn last_session() -> io::Result<PathBuf> {
    std::fs::canonicalize(sessions().join(LAST))
}
