//! Where sessions, the control socket and tunnels live.

use crate::session::TargetSpec;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use varid_recording::manifest::rfc3339;

/// The folder of all sessions.
pub fn sessions() -> PathBuf {
    base("XDG_STATE_HOME", ".local/state", "/var/lib/varid")
}

/// `variable`/varid of the user, `root` for root; a device without either has a folder for everybody.
fn base(variable: &str, below_home: &str, root: &str) -> PathBuf {
    let device = Path::new("/data/local/tmp");
    if device.is_dir() {
        return device.join("varid");
    }
    if nix::unistd::geteuid().is_root() {
        return PathBuf::from(root);
    }
    let folder = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from).join(below_home);
    folder.unwrap_or_else(home).join("varid")
}

/// Makes a folder and those above it, for this user only.
pub fn make_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A folder for a new session, named by the moment and the target, and free.
pub fn new_session(target: &TargetSpec) -> io::Result<PathBuf> {
    let what = match target {
        TargetSpec::App(package) => package.clone(),
        TargetSpec::Pid(pid) => format!("pid{pid}"),
        TargetSpec::All => "all".to_owned(),
        TargetSpec::Command(_, line) => {
            let program = line.split_whitespace().next().unwrap_or_default();
            program.rsplit('/').next().unwrap_or_default().to_owned()
        }
    };
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let moment: String = rfc3339(SystemTime::now()).chars().filter(char::is_ascii_digit).take(14).collect();
    let stem = format!("{moment}-{}", what.chars().map(safe).take(64).collect::<String>());
    let sessions = sessions();
    make_private(&sessions)?;
    for number in 0.. {
        let name = if number == 0 { stem.clone() } else { format!("{stem}.{number}") };
        let path = sessions.join(name);
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("cannot create {}: {error}", path.display()))),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The session that was recorded last is the one that a report is about.
pub fn set_last(session: &Path) -> io::Result<()> {
    let link = sessions().join("last");
    make_private(&sessions())?;
    let new = sessions().join(format!(".last.{}", std::process::id()));
    std::os::unix::fs::symlink(std::path::absolute(session)?, &new)?;
    std::fs::rename(&new, link)
}

/// The last session, if there is one.
pub fn last_session() -> io::Result<PathBuf> {
    std::fs::canonicalize(sessions().join("last"))
}
