//! Where sessions, the control socket and tunnels live.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use varid_recording::Owner;
use varid_session::ProgramContext;
use varid_vm::VmKinds;

/// A folder that holds all files of varid, instead of the user's own folders.
pub const HOME: &str = "VARID_HOME";

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

/// Makes a folder and those above it, for this user only.
pub fn make_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// What a session needs of this program.
pub fn program_context(vms: VmKinds) -> ProgramContext {
    ProgramContext {
        sudo_user: sudo_user(),
        cache: cache(),
        vms,
    }
}

/// The user that started this process as root, by sudo.
fn sudo_user() -> Option<Owner> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    nix::unistd::geteuid().is_root().then_some(())?;
    let (user, group) = (number("SUDO_UID")?, number("SUDO_GID")?);
    Some(Owner::new(user, group))
}
