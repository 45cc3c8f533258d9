//! Tests `varid --adb` with an `adb` that uses a folder of this machine as a device. Scripts play Android's own
//! programs (su, run-as, getprop) according to their documentation.

mod access;
mod recordings;
mod support;
mod together;

use anyhow::{Result, ensure};
use std::os::unix::fs::PermissionsExt;
use support::Device;
use varid_tests::{skip_without_root, testbed};

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
fn a_missing_binary_is_distinguished_from_a_full_device() -> Result<()> {
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
    // A sticky folder: anyone may write, but only rename their own files.
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
        // The group is the owner's own.
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
    let programs = || -> Result<Vec<std::path::PathBuf>> {
        let files = std::fs::read_dir(device.at("tmp/varid/bin"))?.flatten();
        let files = files.map(|file| file.path());
        // Each has a file beside it with the time of its last use.
        Ok(files.filter(|file| file.extension().is_none()).collect())
    };
    let old = programs()?;
    ensure!(old.len() == 1, "{old:?}");
    std::fs::rename(&old[0], device.at("tmp/varid/bin/varid-0"))?;
    device.ok(&["--adb", "status"])?;
    ensure!(programs()? == old, "{:?}", programs());
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
        // The host detects usage errors before it contacts a device.
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
