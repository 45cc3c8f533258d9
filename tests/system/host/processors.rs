//! Tests that `varid estimate` finds the cycles that recorded programs took on processors, in RTL.

#[path = "../processors.rs"]
mod truth;

use anyhow::{Result, ensure};
use std::path::Path;
use truth::Truth;

/// Compares the estimates of all recorded configurations of a core.
fn check(core: &str) -> Result<()> {
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest");
    let mut checked = 0;
    for truth in Truth::read_all(&guest.join("truth"))? {
        if truth.core()? == core {
            truth.check(&guest.join("elf"))?;
            checked += 1;
        }
    }
    ensure!(checked > 0, "nothing was recorded of {core}");
    Ok(())
}

#[test]
fn cycles_of_ibex_are_those_of_its_rtl() -> Result<()> {
    check("ibex")
}

#[test]
fn cycles_of_picorv32_are_those_of_its_rtl() -> Result<()> {
    check("picorv32")
}

#[test]
fn cycles_of_cv32e40p_are_those_of_its_rtl() -> Result<()> {
    check("cv32e40p")
}

#[test]
fn cycles_of_vexriscv_are_near_those_of_its_rtl_with_exact_misses_of_its_data_cache() -> Result<()>
{
    check("vexriscv")
}
