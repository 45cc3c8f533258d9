//! The libFuzzer program of all targets: `VARID_FUZZ_TARGET=NAME fuzz CORPUS [OPTION...]`. run.sh calls it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use varid_fuzz::targets::{TARGETS, Target, find};

/// The environment variable with the target's name. The arguments belong to libFuzzer.
const VARIABLE: &str = "VARID_FUZZ_TARGET";

static TARGET: OnceLock<Target> = OnceLock::new();

fn target_of_environment() -> Target {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    find(&name).unwrap_or_else(|| {
        let names = TARGETS.map(|(name, _)| name).join(" ");
        eprintln!("fuzz: {VARIABLE}={name:?}: the targets are {names}");
        std::process::exit(2);
    })
}

fuzz_target!(|bytes: &[u8]| TARGET.get_or_init(target_of_environment)(bytes));
