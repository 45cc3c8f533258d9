//! Tests the owner of a session, and that no user can make root write to other files.

use anyhow::{Context, Result, ensure};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use varid_tests::{Running, manifest, printed, skip_without_root, testbed};

/// An unprivileged user: Debian's nobody.
const USER: u32 = 65534;

/// Spins until its first argument exists, then performs new kernel operations.
const WORK: &str = r#"while [ ! -e "$0" ]; do :; done; find /usr/share/doc >/dev/null; dd if=/dev/zero of=/dev/null bs=1k count=100000 2>/dev/null"#;

/// Makes a user's folder below one that everybody can read.
fn home() -> Result<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    let home = folder.path().join("home");
    fs::create_dir(&home)?;
    chown(&home, Some(USER), Some(USER))?;
    Ok((folder, home))
}

/// Runs a user's shell script in their folder.
fn as_user(home: &Path, script: &str, argument: &Path) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-ec", script, "sh"]).arg(argument);
    let status = shell.current_dir(home).uid(USER).gid(USER).status()?;
    ensure!(status.success(), "{script}: {status}");
    Ok(())
}

/// Runs `varid record` of a command as the user by sudo.
fn sudo_record(session: &Path) -> Result<Output> {
    let mut varid = testbed()?.varid();
    varid
        .args(["record", "-o"])
        .arg(session)
        .args(["--", "true"]);
    varid.envs([
        ("SUDO_UID", USER.to_string()),
        ("SUDO_GID", USER.to_string()),
    ]);
    Ok(varid.output()?)
}

#[test]
fn a_user_who_moves_the_folder_of_roots_session_has_it_recorded_there_and_nothing_written_elsewhere()
-> Result<()> {
    if skip_without_root("ownership") {
        return Ok(());
    }
    let (folder, home) = home()?;
    let (victim, go) = (folder.path().join("victim"), folder.path().join("go"));
    fs::write(&victim, "root's own")?;
    let mut varid = testbed()?.varid();
    varid
        .args(["record", "-F", "4999", "-o"])
        .arg(home.join("s"));
    varid.args(["--", "sh", "-c", WORK]).arg(&go);
    let mut varid = Running(varid.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let symbols = home.join("s/symbols/kernel.sym");
    while !symbols.exists() && varid.0.try_wait()?.is_none() {
        std::thread::yield_now();
    }
    as_user(
        &home,
        "mv s moved; mkdir -p s/symbols; for name in session.json session.json.new contexts.data symbols/kernel.new symbols/kernel.sym; \
         do ln -s \"$1\" s/$name; done",
        &victim,
    )?;
    let before = fs::metadata(home.join("moved/symbols/kernel.sym"))?.len();
    fs::write(&go, "")?;
    ensure!(varid.0.wait()?.success(), "varid failed");

    ensure!(
        fs::read(&victim)? == b"root's own",
        "root wrote through a link"
    );
    let planted =
        printed(
            Command::new("find")
                .arg(home.join("s"))
                .args(["!", "-user", &USER.to_string()]),
        )?;
    ensure!(
        planted.is_empty(),
        "root wrote into another's folder: {planted}"
    );
    let moved = home.join("moved");
    ensure!(manifest(&moved)?["state"] == "complete");
    let after = fs::metadata(moved.join("symbols/kernel.sym"))?.len();
    ensure!(
        after > before,
        "nothing was written after the folder was moved"
    );
    let report = printed(testbed()?.varid().args(["report", "-i"]).arg(&moved))?;
    ensure!(report.contains("dd"), "{report}");
    Ok(())
}

#[test]
fn a_session_in_a_folder_that_sudos_user_names_is_theirs_and_can_be_replaced() -> Result<()> {
    if skip_without_root("ownership") {
        return Ok(());
    }
    let (_folder, home) = home()?;
    let session = home.join("s");
    for _ in 0..2 {
        let output = sudo_record(&session)?;
        ensure!(output.status.success(), "{output:?}");
        let others =
            printed(
                Command::new("find")
                    .arg(&session)
                    .args(["!", "-user", &USER.to_string()]),
            )?;
        ensure!(others.is_empty(), "not the user's: {others}");
        let readable = printed(Command::new("find").arg(&session).args(["-perm", "/077"]))?;
        ensure!(readable.is_empty(), "others can read {readable}");
    }
    Ok(())
}

#[test]
fn what_is_no_folder_and_another_users_session_are_refused_and_stay_as_they_are() -> Result<()> {
    if skip_without_root("ownership") {
        return Ok(());
    }
    let (folder, home) = home()?;
    let (session, link) = (home.join("s"), home.join("link"));
    ensure!(sudo_record(&session)?.status.success());
    // A session of root, to which the user has made a link.
    let roots = folder.path().join("roots");
    let record = |session: &Path| {
        let mut varid = testbed()?.varid();
        varid.args(["record", "-o"]).arg(session);
        Ok::<_, anyhow::Error>(varid.args(["--", "true"]).output()?)
    };
    ensure!(record(&roots)?.status.success());
    let inode = |path: &Path| fs::metadata(path.join("perf.data")).map(|file| file.ino());
    let before = (inode(&session)?, inode(&roots)?);
    as_user(&home, "ln -s \"$1\" link; mkfifo pipe", &roots)?;
    let null = folder.path().join("null");
    let made = printed(Command::new("mknod").arg(&null).args(["c", "1", "3"]))?;
    ensure!(made.is_empty(), "{made}");
    for (path, why) in [
        (link.clone(), "symbolic link"),
        (link.join(""), "symbolic link"),
        (home.join("pipe"), "not a folder"),
        (null.clone(), "not a folder"),
        (session.clone(), "belongs to another user"),
    ] {
        let output = record(&path)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(125), "{path:?}: {output:?}");
        ensure!(said.contains(why), "{path:?}: {said}");
    }
    let after = (inode(&session)?, inode(&roots)?);
    ensure!(before == after, "a session was replaced");
    let kind = |path: &Path| fs::symlink_metadata(path).map(|it| it.file_type());
    ensure!(kind(&home.join("pipe"))?.is_fifo(), "the pipe is gone");
    ensure!(kind(&null)?.is_char_device(), "the device is gone");
    fs::read_link(link).context("the link is gone").map(drop)
}

/// As on Android: `/data/local/tmp` belongs to the shell, who could create any folder below it.
#[test]
fn root_s_sessions_on_a_device_lie_below_no_folder_of_the_shell() -> Result<()> {
    if skip_without_root("ownership") {
        return Ok(());
    }
    const SHELL: &str = "2000";
    // This machine with another /data, in its own mount namespace.
    const DEVICE: &str = r#"mount -t tmpfs none /mnt && cd /mnt && mkdir upper work root
        mount -t overlay none -o lowerdir=/,upperdir=upper,workdir=work root
        for folder in proc sys dev tmp; do mount --rbind /$folder root/$folder; done
        mount --rbind "$0" "root$0"
        mkdir -p root/data/local/tmp && chmod 771 root/data/local/tmp && chown "$1:$1" root/data/local/tmp
        chroot root env -u VARID_HOME "$0/varid" record true && cd root/data/local && find . -name perf.data"#;
    let release = &testbed()?.release;
    let mut device = Command::new("unshare");
    device
        .args(["--mount", "--propagation", "private", "sh", "-ec", DEVICE])
        .arg(release)
        .arg(SHELL);
    let found = printed(&mut device)?;
    ensure!(
        found.contains("./varid/sessions/") && found.lines().count() == 1,
        "{found}"
    );
    Ok(())
}
