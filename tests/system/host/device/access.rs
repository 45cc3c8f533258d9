//! Tests the user that varid runs as on a device, the settings that it changes, and that it restores them.

use super::support::{Device, WORK};
use anyhow::{Context, Result, ensure};
use std::time::SystemTime;
use varid_tests::{skip_without_root, testbed};

/// Properties in a file, with the interface of Android's programs.
const GETPROP: &str = r#"cat "$FAKE_DEVICE/prop.$1" 2>/dev/null || echo"#;
const SETPROP: &str = r#"[ ! -e "$FAKE_DEVICE/refuses" ] || { echo "setprop: failed" >&2; exit 1; }
echo "$2" >"$FAKE_DEVICE/prop.$1"; echo "$1=$2" >>"$FAKE_DEVICE/set""#;

/// The tolerated clock error in seconds, as in varid. A claim this far in the future is kept for this time plus a
/// minute.
const AHEAD: u64 = 50;

fn now() -> Result<u64> {
    Ok(SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)?
        .as_secs())
}

/// Makes an Android whose adb runs as the shell user. Two apps are debuggable. `AS` is the user of a process.
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
fn settings_that_cannot_be_changed_or_restored_do_not_prevent_recording() -> Result<()> {
    let device = without_root()?;
    let (note, refuses) = (device.at("tmp/varid/changed"), device.at("refuses"));
    std::fs::write(&refuses, "")?;
    let said = device.run(&["--adb", "record", "--", "true"])?;
    ensure!(
        String::from_utf8_lossy(&said.stderr).contains("cannot set security.perf_harden to 0"),
        "{said:?}"
    );
    ensure!(!note.exists(), "noted, though it was not changed");

    // An old note about a setting that cannot be restored.
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

    // The next command tries again.
    std::fs::remove_file(&refuses)?;
    device.ok(&["--adb", "status"])?;
    let set = std::fs::read_to_string(device.at("set"))?;
    ensure!(set == "security.perf_harden=1\n" && !note.exists(), "{set}");
    // A setting that has its original value is not touched.
    std::fs::write(&note, "security.perf_harden\n1\n")?;
    device.ok(&["--adb", "status"])?;
    let again = std::fs::read_to_string(device.at("set"))?;
    ensure!(again == set && !note.exists(), "{again}");
    Ok(())
}

#[test]
fn settings_that_another_terminal_needs_are_not_restored() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = without_root()?;
    let note = device.at("tmp/varid/changed");
    let changes = || std::fs::read_to_string(device.at("set")).unwrap_or_default();
    device.ok(&["--adb", "start", "--app", "org.example", "--shim", "perf"])?;
    let kept = std::fs::read_to_string(&note)?;
    ensure!(
        kept.starts_with("security.perf_harden\n0 varid-") && kept.lines().count() == 2,
        "somebody may still be about to start: {kept}"
    );
    // Now there is another session.
    let now = now()?;
    let claimed = |seconds: u64| format!("security.perf_harden\n{seconds} another\n");
    std::fs::write(&note, claimed(now + AHEAD))?;
    device.ok(&["--adb", "stop"])?;
    ensure!(
        changes() == "security.perf_harden=0\n",
        "restored before a start: {}",
        changes()
    );
    // The other session is gone.
    std::fs::write(&note, claimed(now - 61))?;
    device.ok(&["--adb", "status"])?;
    ensure!(
        changes() == "security.perf_harden=0\nsecurity.perf_harden=1\n" && !note.exists(),
        "{}",
        changes()
    );
    Ok(())
}

#[test]
fn the_last_of_several_terminals_restores() -> Result<()> {
    if skip_without_root("device") {
        return Ok(());
    }
    let device = without_root()?;
    let note = device.at("tmp/varid/changed");
    let set = || std::fs::read_to_string(device.at("set")).unwrap_or_default();
    device.ok(&["--adb", "status"])?;
    let claim = now()? + AHEAD;
    let (first, second) = (format!("{claim} first"), format!("{claim} second"));
    std::fs::write(device.at("prop.security.perf_harden"), "0\n")?;
    std::fs::write(&note, format!("security.perf_harden\n{first}\n{second}\n"))?;
    // One session starts and ends between two that are about to record. Their claims and the setting are kept.
    device.ok(&["--adb", "record", "--", "true"])?;
    let kept = std::fs::read_to_string(&note)?;
    ensure!(
        kept.starts_with(&format!(
            "security.perf_harden\n{first}\n{second}\n0 varid-"
        )),
        "{kept}"
    );
    // One of the two has ended.
    std::fs::write(&note, kept.replace(&first, "0 first"))?;
    device.ok(&["--adb", "record", "--", "true"])?;
    ensure!(set().is_empty() && note.exists(), "{}", set());
    // The other has ended as well.
    std::fs::write(
        &note,
        kept.replace(&first, "0 first").replace(&second, "0 second"),
    )?;
    device.ok(&["--adb", "record", "--", "true"])?;
    ensure!(
        set() == "security.perf_harden=1\n" && !note.exists(),
        "{}",
        set()
    );
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
    // As on Android, the shell's folder does not belong to root.
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
    // The next commands find it there, and change nothing during the recording.
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
            .find(|file| file.path().extension().is_none());
        let there = bin.context("no varid there")?.metadata()?;
        ensure!(there.len() == pushed, "{} of {pushed} bytes", there.len());
    }
    Ok(())
}
