//! Tests that all instructions are measured, and that two clocks agree on them.

#[path = "../calibrate.rs"]
pub mod calibration;

use anyhow::{Result, ensure};
use calibration::Calibration;
use varid_tests::{has_jdk, skipped};

/// The correlation of two clocks below which something is wrong, also beside other programs. On an idle machine it is above 0.9888.
const R: f64 = 0.9;
/// The number of instructions in their forms, of Java's bytecode and of dex code.
const KEYS: usize = 230;
#[cfg(target_arch = "x86_64")]
const DEX_KEYS: usize = 225;

#[test]
fn all_instructions_of_hotspot_s_interpreter_are_measured_by_two_clocks_that_agree() -> Result<()> {
    if !has_jdk() {
        skipped("calibrate", "there is no openjdk-17-jdk-headless");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let calibration = Calibration::of_hotspot(&["--time", "60s"], folder.path())?;
    calibration.check(&[
        "iload_wide",
        "ifeq_taken",
        "ifeq_not",
        "invokeinterface",
        "putfield_long",
    ])?;
    ensure!(
        calibration.costs.len() >= KEYS,
        "{}",
        calibration.costs.len()
    );
    let r = calibration.r()?;
    ensure!(r >= R, "r = {r}");
    // An interpreter's call takes ten times as long as an addition, on any machine.
    let value = |key: &str| calibration.costs.get(key).map_or(0.0, |cost| cost[0]);
    ensure!(
        value("invokestatic") > 3.0 * value("iadd"),
        "{:?}",
        calibration.costs
    );
    Ok(())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn all_instructions_of_art_s_interpreters_are_measured_by_two_clocks_that_agree() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for vm in ["art11", "art14", "art14-switch"] {
        let calibration = Calibration::run(vm, &["--time", "30s"], folder.path())?;
        calibration.check(&[
            "const/4",
            "if-eqz_taken",
            "invoke-interface/range",
            "sput-wide",
        ])?;
        let keys = calibration.costs.len();
        ensure!(keys >= DEX_KEYS, "{vm}: {keys}");
        let r = calibration.r()?;
        ensure!(r >= R, "{vm}: r = {r}");
        let value = |key: &str| calibration.costs.get(key).map_or(0.0, |cost| cost[0]);
        ensure!(
            value("invoke-static") > 3.0 * value("add-int"),
            "{vm}: {:?}",
            calibration.costs
        );
    }
    Ok(())
}
