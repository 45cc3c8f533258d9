//! The paths of sessions, the control socket and the cache.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use varid_recording::Owner;
use varid_session::ProgramContext;
use varid_vm::VmKinds;

/// The environment variable for a folder of all files of varid, instead of the user's own folders.
pub const HOME: &str = "VARID_HOME";

/// This folder exists on a device. It normally belongs to adb's shell.
const DEVICE: &str = "/data/local/tmp";

/// varid's folders on a device, as `varid --adb` uses them. Root does not use the first one if it is below another user's folder,
/// because that user could replace it.
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

/// This user's own folder of files that can be recreated.
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

/// The log of a daemon that `start` has started.
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

/// Returns [`HOME`] as an absolute path, if it is set.
pub fn own_home() -> Option<PathBuf> {
    let home = std::env::var_os(HOME).filter(|home| !home.is_empty())?;
    std::path::absolute(home).ok()
}

/// Returns an absolute path from the environment. Others are ignored, as the XDG specification requires.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Returns the user's home: from the environment, else from the system. Never a folder that others may have created.
fn user_home() -> PathBuf {
    let named = std::env::var_os("HOME").filter(|home| !home.is_empty());
    named.map(PathBuf::from).unwrap_or_else(|| {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid());
        user.ok()
            .flatten()
            .map_or_else(|| PathBuf::from("/nonexistent"), |user| user.dir)
    })
}

/// Creates a folder and its parents, for this user only.
pub fn make_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Returns what a session needs of this program.
pub fn program_context(vms: VmKinds) -> ProgramContext {
    ProgramContext {
        sudo_user: sudo_user(),
        cache: cache(),
        vms,
    }
}

/// Returns the user that has started this process as root with sudo.
fn sudo_user() -> Option<Owner> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    nix::unistd::geteuid().is_root().then_some(())?;
    let (user, group) = (number("SUDO_UID")?, number("SUDO_GID")?);
    Some(Owner::new(user, group))
}
