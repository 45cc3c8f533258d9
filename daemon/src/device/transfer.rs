//! Copies a session from the device to the host.

use super::error::{DeviceError, Result};
use super::place::Place;
use super::shell::quote;
use crate::paths;
use std::io;
use std::path::{Path, PathBuf};
use varid_recording::{
    Manifest, SESSION_JSON, SYMBOLS, SessionReader, is_plain_name, is_session_file, may_hold,
};

/// Copies a session's folder. Returns its path on the host: `output`, or the same name among the sessions.
pub fn pull(place: &Place, there: &str, output: Option<&Path>) -> Result<PathBuf> {
    let name = there.rsplit('/').next().unwrap_or(there);
    let target = match output {
        Some(output) => output.to_owned(),
        None if is_plain_name(name) => paths::sessions().join(name),
        None => return Err(place.device.failed("copy a session of that name", name)),
    };
    let above = match target.parent() {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        _ => PathBuf::from("."),
    };
    paths::make_private(&above).map_err(DeviceError::io("create", &above))?;
    // It gets its name at the end, so that it is complete or absent.
    let new = above.join(format!(".{}.pulled", std::process::id()));
    remove(&new)?;
    let copied = copy(place, there, &new).and_then(|()| put(&new, &target, output.is_some()));
    if copied.is_err() {
        remove(&new)?;
    }
    copied
}

fn copy(place: &Place, there: &str, new: &Path) -> Result<()> {
    let symbols = new.join(SYMBOLS);
    paths::make_private(&symbols).map_err(DeviceError::io("create", &symbols))?;
    let script = format!(
        "cd {} && for file in * {SYMBOLS}/* {SYMBOLS}/*/*; do
[ ! -f \"$file\" ] || [ -L \"$file\" ] || echo \"$file\"; done",
        quote(there)
    );
    let listed = place.device.shell("read the session", &script)?;
    for file in listed.lines().filter(|file| is_session_file(file)) {
        let to = new.join(file);
        if let Some(folder) = to.parent() {
            paths::make_private(folder).map_err(DeviceError::io("create", folder))?;
        }
        place.device.pull(&format!("{there}/{file}"), &to)?;
    }
    // A session that cannot be read has not arrived correctly.
    SessionReader::open(new)
        .and_then(|session| session.records().map(drop))
        .map_err(|error| place.device.failed("copy the session", &error.to_string()))
}

/// Renames the folder. A previously pulled copy of the same session is replaced, and if the folder was `named`, any session is, as
/// by `varid record -o`.
fn put(new: &Path, target: &Path, named: bool) -> Result<PathBuf> {
    let start = |folder: &Path| {
        let manifest = Manifest::read(&folder.join(SESSION_JSON)).ok()?;
        Some((
            manifest.start_time_ns,
            manifest.wall_start,
            manifest.host.machine,
        ))
    };
    let own = start(new);
    let mut free = target.to_owned();
    for number in 1u32.. {
        let rename = || std::fs::rename(new, &free);
        match rename() {
            Ok(()) => return Ok(free),
            Err(error) if !is_taken(&error) => return Err(DeviceError::io("create", free)(error)),
            Err(_) => {}
        }
        if start(&free) == own || named && is_session(&free) {
            remove(&free)?;
            rename().map_err(DeviceError::io("create", &free))?;
            return Ok(free);
        }
        if named {
            let other = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(DeviceError::io("replace", free)(other));
        }
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{number}"));
        free = name.into();
    }
    Err(DeviceError::io("create", free)(
        io::ErrorKind::AlreadyExists.into(),
    ))
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
    )
}

/// Returns true if a folder contains a session and nothing else.
fn is_session(folder: &Path) -> bool {
    let ours = |entry: io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(may_hold))
    };
    folder.join(SESSION_JSON).is_file()
        && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.all(ours))
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(DeviceError::io("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(folder: &Path, start: u64) {
        std::fs::create_dir(folder).unwrap();
        let json = format!(
            r#"{{"version":1,"state":"complete","start_time_ns":{start},"source":"perf",
            "event":{{"name":"c","frequency":1,"type":0,"config":0}},"target":{{"kind":"all"}}}}"#
        );
        std::fs::write(folder.join(SESSION_JSON), json).unwrap();
    }

    #[test]
    fn a_session_replaces_itself_and_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let target = at("s");
        for (start, expected) in [(1, "s"), (1, "s"), (2, "s.1"), (2, "s.1"), (3, "s.2")] {
            session(&at("new"), start);
            assert_eq!(put(&at("new"), &target, false).unwrap(), at(expected));
        }
        session(&at("new"), 4);
        assert_eq!(put(&at("new"), &target, true).unwrap(), target);
        session(&at("new"), 5);
        std::fs::write(target.join("mine"), "").unwrap();
        put(&at("new"), &target, true).unwrap_err();
        assert!(target.join("mine").exists());
    }
}
