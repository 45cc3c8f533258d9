//! An adb whose answer never ends, or never starts, does not block varid.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A timeout that only a failure reaches.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Runs varid with an adb whose device does this for each command.
fn varid(folder: &Path, does: &str) -> Command {
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in devices) printf 'List of devices attached\\nX\\tdevice\\n';; *) {does};; esac\n"
    );
    let adb = folder.join("adb");
    fs::write(&adb, script).unwrap();
    fs::set_permissions(&adb, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut varid = Command::new(env!("CARGO_BIN_EXE_varid"));
    varid
        .args(["doctor", "--adb"])
        .env("PATH", path)
        .env("HOME", folder)
        .env_remove("ANDROID_SERIAL")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    varid
}

#[test]
fn a_device_whose_answer_has_no_end_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = varid(folder.path(), "exec yes").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("longer than 16777216 bytes"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn varid_ends_at_once_where_adb_hangs_and_adb_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let hangs = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; exec sleep 100000",
        pid.display()
    );
    let mut varid = varid(folder.path(), &hangs).spawn().unwrap();
    let began = Instant::now();
    let adb = loop {
        if let Ok(pid) = fs::read_to_string(&pid) {
            break pid.trim().to_owned();
        }
        assert!(began.elapsed() < FOR_EVER, "adb is not run");
        std::thread::yield_now();
    };
    let runs = || {
        let stat = fs::read_to_string(format!("/proc/{adb}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(runs());
    let pid = varid.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    varid.wait().unwrap();
    while runs() {
        assert!(began.elapsed() < FOR_EVER, "adb outlives varid");
        std::thread::yield_now();
    }
}
