//! Does `varid --adb` do on a device what varid does here? With an `adb` that takes a folder of this machine for a device: what
//! Android's own programs (su, run-as, getprop) answer is played by scripts, as their documentation says.

#[path = "device/support.rs"]
mod support;

use anyhow::{Context, Result, ensure};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Device;
use varid_tests::{is_alive, skip_without_root, testbed};

#[test]
fn what_keeps_a_device_from_use_is_said() -> Result<()> {
    let device = Device::new()?;
    for (list, serial, expected) in [
        ("", "--adb", "adb sees no device: attach"),
        (
            "A\tdevice\nB\tunauthorized\n",
            "--adb",
            "choose one with --adb=SERIAL: A, B (unauthorized)",
        ),
        (
            "A\tdevice\nB\tunauthorized\n",
            "--adb=B",
            "B is unauthorized: accept",
        ),
        ("A\toffline\n", "--adb", "A is offline: "),
        (
            "A\tdevice\n",
            "--adb=C",
            "adb sees no device C; there are A",
        ),
    ] {
        device.list(list)?;
        let said = device.fails(&[serial, "status"])?;
        ensure!(said.contains(expected), "{list:?}, {serial}: {said}");
    }
    let none = device
        .varid(&["--adb", "status"])?
        .env("PATH", device.at("nowhere"))
        .output()?;
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    ensure!(said.contains("cannot run adb: "), "{said}");
    ensure!(said.contains("platform-tools"), "{said}");
    Ok(())
}

#[test]
fn a_device_without_a_varid_for_it_is_told_from_one_without_room() -> Result<()> {
    let device = Device::new()?;
    device.program("getprop", "echo mips64,mips")?;
    device.program("uname", "echo mips64")?;
    let said = device.fails(&["--adb", "status"])?;
    ensure!(said.contains("its ABI is 'mips64,mips"), "{said}");
    device.program("getprop", "echo arm64-v8a,armeabi-v7a")?;
    let arm = device.at("bins/arm64");
    std::fs::create_dir(&arm)?;
    std::os::unix::fs::symlink(testbed()?.release.join("varid"), arm.join("varid"))?;
    let said = device.fails(&["--adb", "status"])?;
    ensure!(
        said.contains("is no varid for arm64: it is Elf64 for X86_64"),
        "{said}"
    );
    Ok(())
}

#[test]
fn a_folder_that_somebody_else_could_have_made_is_not_used() -> Result<()> {
    let device = Device::new()?;
    let home = device.at("tmp/varid");
    let closed = |mode| std::fs::set_permissions(&home, PermissionsExt::from_mode(mode));
    let refused = || -> Result<()> {
        let said = device.fails(&["--adb", "status"])?;
        ensure!(said.contains("no other user can replace"), "{said}");
        ensure!(device.calls("push") == 0, "something was pushed");
        Ok(())
    };
    std::fs::create_dir(&home)?;
    closed(0o777)?;
    refused()?;
    std::fs::remove_dir(&home)?;
    std::fs::create_dir(device.at("elsewhere"))?;
    std::os::unix::fs::symlink(device.at("elsewhere"), &home)?;
    refused()?;
    std::fs::remove_file(&home)?;
    std::fs::set_permissions(device.at("tmp"), PermissionsExt::from_mode(0o777))?;
    refused()?;
    // Where everybody may write, but nobody rename what is another's.
    std::fs::set_permissions(device.at("tmp"), PermissionsExt::from_mode(0o1777))?;
    device.ok(&["--adb", "status"])?;
    Ok(())
}

#[test]
fn a_folder_below_somebody_elses_is_not_used() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let above = device.at("tmp");
    for (owner, group, mode, is_safe) in [
        (4321, 4321, 0o1777, false),
        (0, 4321, 0o1777, true),
        (0, 4321, 0o775, false),
        (0, 4321, 0o755, true),
        // A group that is the owner's own.
        (0, 0, 0o771, true),
        (4321, 4321, 0o755, false),
    ] {
        std::os::unix::fs::chown(&above, Some(owner), Some(group))?;
        std::fs::set_permissions(&above, PermissionsExt::from_mode(mode))?;
        let output = device.run(&["--adb", "status"])?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let refused = said.contains("no other user can replace");
        ensure!(
            output.status.success() == is_safe && refused != is_safe,
            "{owner}:{group} {mode:o}: {said}"
        );
    }
    Ok(())
}

#[test]
fn varid_is_pushed_when_it_is_another_one() -> Result<()> {
    let device = Device::new()?;
    device.ok(&["--adb", "status"])?;
    device.ok(&["--adb=S1", "sessions"])?;
    ensure!(
        device.calls("push") == 1,
        "pushed {} times",
        device.calls("push")
    );
    let old: Vec<_> = std::fs::read_dir(device.at("tmp/varid/bin"))?
        .flatten()
        .collect();
    ensure!(old.len() == 1, "{old:?}");
    std::fs::rename(old[0].path(), device.at("tmp/varid/bin/varid-0"))?;
    device.ok(&["--adb", "status"])?;
    let new: Vec<_> = std::fs::read_dir(device.at("tmp/varid/bin"))?
        .flatten()
        .collect();
    ensure!(
        new.len() == 1 && new[0].file_name() == old[0].file_name(),
        "{new:?}"
    );
    Ok(())
}

#[test]
fn a_verb_has_its_output_and_exit_status_on_any_device() -> Result<()> {
    let device = Device::new()?;
    for old in [false, true] {
        if old {
            std::fs::write(device.at("old"), "")?;
        }
        let events = device.ok(&["--adb", "events"])?;
        ensure!(
            events.contains("\nSampled by default: ") && !events.contains('\r'),
            "{events}"
        );
        let bad = device.run(&["--adb", "start", "--pid", "0"])?;
        ensure!(bad.status.code() == Some(1), "{bad:?}");
        // The host sees a fault of usage before a device is asked.
        ensure!(
            device.run(&["--adb", "start"])?.status.code() == Some(2),
            "usage"
        );
        ensure!(
            device.run(&["--adb", "report"])?.status.code() == Some(2),
            "usage"
        );
        ensure!(device.run(&["pull"])?.status.code() == Some(2), "usage");
    }
    Ok(())
}

/// Work for a shell, words that a shell could take for something else, and an exit status.
const WORK: [&str; 6] = [
    "sh",
    "-c",
    "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo \"$0|$1\"",
    "a  'b' \"c\"",
    "$HOME `id` \\ * ;",
    "ä",
];

#[test]
fn a_recording_comes_to_the_host_and_can_be_reported() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let mut words = vec!["--adb", "record", "-F", "4999", "--"];
    words.extend(WORK);
    let said = device.ok(&words)?;
    ensure!(said == format!("{}|{}\n", WORK[3], WORK[4]), "{said}");
    let report = device.ok(&["report", "--by", "image", "--format", "json"])?;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    ensure!(
        report["samples"].as_u64().context("no count")? > 0,
        "{report}"
    );
    ensure!(
        device.ok(&["report", "--by", "image"])?.contains("dash"),
        "{report}"
    );
    let sessions = device.sessions()?;
    ensure!(
        sessions.len() == 1 && sessions[0]["state"] == "complete",
        "{sessions:?}"
    );
    // The libraries that it names were pulled once, and are the recorded ones.
    let pulled = device.calls("pull");
    let kept = device.at("host/cache/device-symbols/.build-id");
    ensure!(std::fs::read_dir(&kept)?.count() > 0, "no library was kept");
    device.ok(&["--adb", "pull"])?;
    ensure!(
        device.sessions()?.len() == 1,
        "the same session is there twice"
    );
    let files = std::fs::read_dir(
        PathBuf::from(sessions[0]["folder"].as_str().context("folder")?).join("symbols"),
    )?;
    ensure!(
        device.calls("pull") == pulled + 2 + files.count(),
        "libraries were pulled again"
    );
    let named = device.at("named");
    device.ok(&["--adb", "pull", "-o", &named.display().to_string()])?;
    ensure!(named.join("perf.data").is_file(), "-o");
    Ok(())
}

#[test]
fn a_daemon_there_records_on_when_the_cable_is_pulled() -> Result<()> {
    beside_a_busy_process(pull_the_cable)
}

fn pull_the_cable(device: &Device, pid: &str) -> Result<()> {
    device.ok(&["--adb", "start", "--pid", pid])?;
    std::fs::write(device.at("offline"), "")?;
    let said = device.fails(&["--adb", "status"])?;
    ensure!(
        said.contains("connection was lost: adb: device offline"),
        "{said}"
    );
    std::fs::remove_file(device.at("offline"))?;
    device.ok(&["--adb", "stop"])?;
    let sessions = device.sessions()?;
    ensure!(
        sessions.len() == 1 && sessions[0]["state"] == "complete",
        "{sessions:?}"
    );
    Ok(())
}

/// How long a test waits for what never takes so long: it fails then.
const PATIENCE: Duration = Duration::from_secs(120);

/// Tries something on a device while a process computes, of which it gets the pid.
fn beside_a_busy_process(attempt: fn(&Device, &str) -> Result<()>) -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let mut shell = Command::new("sh");
    let mut app = shell.args(["-c", "while :; do :; done"]).spawn()?;
    let outcome = attempt(&device, &app.id().to_string());
    app.kill()?;
    app.wait()?;
    outcome
}

#[test]
fn ctrl_c_is_passed_on_and_the_recording_comes() -> Result<()> {
    beside_a_busy_process(interrupt)
}

fn interrupt(device: &Device, pid: &str) -> Result<()> {
    let mut varid = recording(device, pid)?;
    let to = nix::unistd::Pid::from_raw(i32::try_from(varid.id())?);
    nix::sys::signal::kill(to, nix::sys::signal::Signal::SIGINT)?;
    let mut stderr = varid.stderr.take().context("piped")?;
    let (send, receive) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        send.send(stderr.read_to_string(&mut said).map(|_| said))
    });
    let Ok(said) = receive.recv_timeout(PATIENCE) else {
        varid.kill()?;
        varid.wait()?;
        anyhow::bail!("varid does not end by Ctrl-C");
    };
    reader.join().ok().context("the reader")??;
    let said = said?;
    let status = varid.wait()?;
    ensure!(
        status.success() && said.contains("pulled into"),
        "{status}: {said}"
    );
    ensure!(is_alive(pid), "the process was ended");
    Ok(())
}

/// `varid --adb record` of a process, from when samples are in its file.
fn recording(device: &Device, pid: &str) -> Result<Child> {
    let mut varid = device
        .varid(&["--adb", "record", "--pid", pid])?
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let there = device.at("tmp/varid/sessions");
    let records = || {
        let folders = std::fs::read_dir(&there).into_iter().flatten().flatten();
        let size = |folder: std::fs::DirEntry| folder.path().join("perf.data").metadata();
        folders
            .filter_map(|folder| size(folder).ok())
            .any(|file| file.len() > 10_000)
    };
    let begun = Instant::now();
    while !records() {
        ensure!(varid.try_wait()?.is_none(), "it ended by itself");
        if begun.elapsed() > PATIENCE {
            varid.kill()?;
            varid.wait()?;
            anyhow::bail!("nothing is recorded");
        }
        std::thread::yield_now();
    }
    Ok(varid)
}

#[test]
fn a_recording_whose_connection_ends_is_complete_and_can_be_pulled() -> Result<()> {
    beside_a_busy_process(vanish)
}

fn vanish(device: &Device, pid: &str) -> Result<()> {
    let mut varid = recording(device, pid)?;
    // With it goes the reader of what varid says there.
    varid.kill()?;
    varid.wait()?;
    drop(varid);
    let begun = Instant::now();
    loop {
        ensure!(begun.elapsed() < PATIENCE, "it records on without a reader");
        let said = device.ok(&["--adb", "sessions", "--json"])?;
        let document: serde_json::Value = serde_json::from_str(&said)?;
        match document["sessions"][0]["state"].as_str() {
            Some("complete") => break,
            Some("recording") => std::thread::yield_now(),
            other => anyhow::bail!("the session is {other:?}"),
        }
    }
    device.ok(&["--adb", "pull"])?;
    device.ok(&["report"])?;
    Ok(())
}

/// Properties in a file, as Android's programs read and write them.
const GETPROP: &str = r#"cat "$FAKE_DEVICE/prop.$1" 2>/dev/null || echo"#;
const SETPROP: &str = r#"[ ! -e "$FAKE_DEVICE/refuses" ] || { echo "setprop: failed" >&2; exit 1; }
echo "$2" >"$FAKE_DEVICE/prop.$1"; echo "$1=$2" >>"$FAKE_DEVICE/set""#;

/// An Android whose adb is the shell: two apps are debuggable. `AS`: whose process it is.
fn without_root() -> Result<Device> {
    let device = Device::new()?;
    device.program(
        "id",
        r#"[ "$AS" = app ] && echo 'uid=10123(u0_a123)' || echo 'uid=2000(shell)'"#,
    )?;
    device.program("su", "echo 'su: not found' >&2; exit 127")?;
    device.program("getprop", GETPROP)?;
    device.program("setprop", SETPROP)?;
    std::fs::write(device.at("prop.security.perf_harden"), "1\n")?;
    device.program(
        "run-as",
        r#"case $1 in
org.example) folder=app ;;
org.other) folder=other ;;
*) echo "run-as: package not debuggable: $1" >&2; exit 1 ;;
esac
cd "$FAKE_DEVICE/$folder" && shift && AS=app exec "$@""#,
    )?;
    std::fs::create_dir(device.at("app"))?;
    std::fs::create_dir(device.at("other"))?;
    Ok(device)
}

#[test]
fn what_cannot_be_changed_or_restored_keeps_nobody_from_recording() -> Result<()> {
    let device = without_root()?;
    let (note, refuses) = (device.at("tmp/varid/changed"), device.at("refuses"));
    std::fs::write(&refuses, "")?;
    let said = device.run(&["--adb", "record", "--", "true"])?;
    ensure!(
        String::from_utf8_lossy(&said.stderr).contains("cannot set security.perf_harden to 0"),
        "{said:?}"
    );
    ensure!(!note.exists(), "noted, though it was not changed");

    // An old note of something that cannot be set back.
    std::fs::write(device.at("prop.security.perf_harden"), "0\n")?;
    std::fs::write(&note, "security.perf_harden\nnever.heard.of\n1\n")?;
    let output = device.run(&["--adb", "status"])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.success() && said.contains("cannot set security.perf_harden to 1"),
        "{said}"
    );
    let kept = std::fs::read_to_string(&note)?;
    ensure!(kept.starts_with("security.perf_harden\n"), "{kept}");

    // The note is new now: a session may be about to start.
    std::fs::remove_file(&refuses)?;
    device.ok(&["--adb", "status"])?;
    ensure!(!device.at("set").exists(), "restored before a start");
    std::fs::write(&note, "security.perf_harden\n1\n")?;
    device.ok(&["--adb", "status"])?;
    let set = std::fs::read_to_string(device.at("set"))?;
    ensure!(set == "security.perf_harden=1\n" && !note.exists(), "{set}");
    // What is as it was is left alone.
    std::fs::write(&note, "security.perf_harden\n1\n")?;
    device.ok(&["--adb", "status"])?;
    let again = std::fs::read_to_string(device.at("set"))?;
    ensure!(again == set && !note.exists(), "{again}");
    Ok(())
}

#[test]
fn root_sees_the_kernels_functions_while_it_records_and_restores_what_the_shell_left() -> Result<()>
{
    if skip_without_root("device") {
        return Ok(());
    }
    let device = Device::new()?;
    let pointers = device.at("proc/sys/kernel/kptr_restrict");
    std::fs::create_dir_all(pointers.parent().context("no folder")?)?;
    std::fs::write(&pointers, "2\n")?;
    device.program("getprop", GETPROP)?;
    device.program("setprop", SETPROP)?;
    std::fs::write(device.at("prop.security.perf_harden"), "0\n")?;
    // As on Android: the shell's folder is not root's.
    let shells = device.at("data/local/tmp/varid");
    std::fs::create_dir_all(&shells)?;
    std::os::unix::fs::chown(device.at("data/local/tmp"), Some(2000), Some(2000))?;
    std::fs::write(
        shells.join("changed"),
        "security.perf_harden\nnever.heard.of\n1\n",
    )?;
    let words = [
        "--adb",
        "record",
        "--",
        "cat",
        "/proc/sys/kernel/kptr_restrict",
    ];
    let output = device
        .varid(&words)?
        .env_remove("VARID_DEVICE_HOME")
        .output()?;
    ensure!(
        output.status.success() && output.stdout == b"1\n",
        "{output:?}"
    );
    let now = std::fs::read_to_string(&pointers)?;
    ensure!(now == "2\n", "kptr_restrict is left at {now}");
    let set = std::fs::read_to_string(device.at("set"))?;
    ensure!(set == "security.perf_harden=1\n", "{set}");
    ensure!(
        device.at("data/local/varid/sessions").is_dir() && !shells.join("sessions").exists(),
        "root's folder"
    );
    Ok(())
}

#[test]
fn another_app_is_refused_while_one_is_recorded() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = without_root()?;
    let start = |app| ["--adb", "start", "--app", app, "--shim", "perf"];
    device.ok(&start("org.example"))?;
    for other in [&start("org.other")[..], &["--adb", "record", "--", "true"]] {
        let said = device.fails(other)?;
        ensure!(
            said.contains("org.example still has a session that records")
                && said.contains("varid --adb stop"),
            "{said}"
        );
    }
    let status = device.ok(&["--adb", "status"])?;
    ensure!(status.contains("org.example"), "{status}");
    device.ok(&["--adb", "stop"])?;
    device.ok(&start("org.other"))?;
    device.ok(&["--adb", "stop"])?;
    ensure!(device.sessions()?.len() == 2, "both were not pulled");
    Ok(())
}

#[test]
fn without_root_an_app_is_profiled_as_itself_and_what_was_changed_is_restored() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = without_root()?;
    let said = device.fails(&["--adb", "start", "--app", "org.closed"])?;
    ensure!(
        said.contains("org.closed cannot be profiled")
            && said.contains("not debuggable: org.closed"),
        "{said}"
    );
    ensure!(
        !device.at("set").exists(),
        "something was changed for nothing"
    );

    device.ok(&[
        "--adb",
        "start",
        "--app",
        "org.example:remote",
        "--shim",
        "perf",
    ])?;
    ensure!(
        device.at("app/varid/run/control.sock").exists(),
        "it does not run as the app"
    );
    let changes = || std::fs::read_to_string(device.at("set")).unwrap_or_default();
    ensure!(changes() == "security.perf_harden=0\n", "{}", changes());
    // The next commands find it there, and change nothing while it records.
    let status = device.ok(&["--adb", "status"])?;
    ensure!(status.contains("org.example:remote"), "{status}");
    ensure!(changes() == "security.perf_harden=0\n", "{}", changes());
    device.ok(&["--adb", "stop"])?;
    ensure!(
        changes() == "security.perf_harden=0\nsecurity.perf_harden=1\n",
        "{}",
        changes()
    );
    ensure!(
        device.sessions()?.len() == 1,
        "the app's files were not pulled"
    );
    ensure!(
        device.calls("exec-out") > 0 && device.calls("pull") == 0,
        "adb's user cannot read them"
    );
    Ok(())
}

#[test]
fn root_by_su_writes_and_reads_its_own_files() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    for form in [
        // AOSP: su USER COMMAND ARGUMENT...
        r#"[ "$1" = 0 ] || { echo "su: invalid uid/gid '$1'" >&2; exit 1; }; shift; AS=root exec "$@""#,
        // Rooted devices: su -c SCRIPT.
        r#"[ "$1" = -c ] || exit 1; AS=root exec sh -c "$2""#,
    ] {
        let device = Device::new()?;
        device.program(
            "id",
            r#"[ "$AS" = root ] && echo 'uid=0(root)' || echo 'uid=2000(shell)'"#,
        )?;
        device.program("su", form)?;
        let mut words = vec!["--adb", "record", "--"];
        words.extend(WORK);
        let said = device.ok(&words)?;
        ensure!(said == format!("{}|{}\n", WORK[3], WORK[4]), "{said}");
        ensure!(
            device.calls("push") + device.calls("pull") == 0,
            "adb's user wrote root's files"
        );
        device.ok(&["report"])?;
        let pushed = testbed()?.release.join("varid").metadata()?.len();
        let bin = std::fs::read_dir(device.at("tmp/varid/bin"))?
            .flatten()
            .next();
        let there = bin.context("no varid there")?.metadata()?;
        ensure!(there.len() == pushed, "{} of {pushed} bytes", there.len());
    }
    Ok(())
}
