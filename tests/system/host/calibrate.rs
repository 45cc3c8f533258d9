//! Tests that `varid calibrate` measures bytecodes on a real VM, and writes a table. What they cost is not judged: the machine is not idle.

#[path = "../calibrate.rs"]
mod calibration;

use anyhow::{Result, ensure};
use calibration::Calibration;
use varid_tests::{has_jdk, skipped, testbed};

/// Instructions in a straight line and in loops, and the clocks that measure them in the time of a gate.
const KEYS: &str = "iadd,ldiv,tableswitch,invokestatic,getfield_ref,new,monitorenter";

#[test]
fn each_clock_measures_instructions_calls_and_objects_in_two_vms() -> Result<()> {
    if !has_jdk() {
        skipped("calibrate", "there is no openjdk-17-jdk-headless");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    for clock in ["nano", "millis", "counter"] {
        let options = [
            "--clock",
            clock,
            "--time",
            "1s",
            "--launches",
            "2",
            "--only",
            KEYS,
        ];
        let calibration = Calibration::of_hotspot(&options, folder.path())?;
        let keys: Vec<&str> = KEYS
            .split(',')
            .chain(["monitorexit", "return", "pop", "aload_1"])
            .collect();
        calibration.check(&keys)?;
        let printed = &calibration.printed;
        ensure!(
            printed.contains(&format!("in 2 VMs, clock {clock}")),
            "{printed}"
        );
        // Both clocks measured something.
        ensure!(calibration.r()?.is_finite(), "{printed}");
    }
    Ok(())
}

/// ART's interpreters on x86-64 are measured. `art14` stands for them in the gate; the long lane has all.
#[test]
#[cfg(target_arch = "x86_64")]
fn dex_code_is_measured_in_art() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let only = "add-int/lit8,if-eqz_taken,packed-switch,invoke-static,iget-wide,monitor-enter";
    let options = ["--time", "1s", "--launches", "2", "--only", only];
    let calibration = Calibration::run("art14", &options, folder.path())?;
    let keys: Vec<&str> = only.split(',').chain(["monitor-exit"]).collect();
    calibration.check(&keys)?;
    ensure!(calibration.r()?.is_finite(), "{}", calibration.printed);
    Ok(())
}

#[test]
fn a_vm_that_cannot_be_measured_is_an_error() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let table = folder.path().join("table.toml");
    for (vm, reason) in [
        (
            "/nonexistent/java {classpath} {class}",
            "cannot run /nonexistent/java",
        ),
        (
            "true {classpath} {class}",
            "the VM ended before its measurement",
        ),
        ("java {class}", "has no {classpath}"),
        ("java", "has no {classpath}"),
        ("artvm --dex {dex} {class}", "has no {library}"),
    ] {
        let output = testbed()?
            .varid()
            .args(["calibrate", "--vm", vm, "-o"])
            .arg(&table)
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            !output.status.success() && errors.contains(reason),
            "{vm}: {errors}"
        );
    }
    ensure!(!table.exists());
    Ok(())
}
