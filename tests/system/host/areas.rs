//! Tests that every sample of a VM with Dalvik's frames is attributed to the correct method, in both word sizes.

use anyhow::{Result, ensure};
use std::process::{Command, Stdio};
use varid_tests::{
    Scale, attach_to, beside_raw, judge, scale, skip_without_root, skipped, testbed,
};

/// Returns the number of samples in methods that are judged.
fn enough() -> u64 {
    match scale() {
        Scale::Gate => 5_000,
        Scale::Long => 10_000,
    }
}

/// Every method is a native function, so its symbol is the ground truth.
fn judged(program: &str, rate: &str) -> Result<()> {
    if skip_without_root("areas") {
        return Ok(());
    }
    let program = testbed()?.areavm.join(program);
    if !program.exists() {
        skipped("areas", "the compiler makes no code of this word size");
        return Ok(());
    }
    let dex = testbed()?.shadowvm.join("shadow.dex");
    let files = ["varid-tunnel".to_owned(), dex.display().to_string()];
    let (mut samples, mut known, mut callers) = (0, 0, 0);
    let (mut uncertain, mut unresolved) = (0, 0);
    while known < enough() {
        let mut vm = Command::new(&program);
        vm.arg(&dex).arg("8").stdin(Stdio::null());
        let (recording, _) = attach_to(&mut vm, &files, &beside_raw(rate))?;
        let counted = judge(
            "areas.py",
            [recording.session(), recording.maps(), program.clone()],
        )?;
        println!("{}: {counted}", program.display());
        let of = |name: &str| counted[name].as_u64().unwrap_or(0);
        ensure!(of("wrong") == 0 && of("method known") > 0, "{counted}");
        // Until varid has found the VM, nothing of it is known. This lasts as long as varid waits for a processor.
        samples += of("samples") - of("vm not ready");
        known += of("method known");
        callers += of("callers known");
        uncertain += of("callers not known");
        unresolved += of("unresolved");
    }
    ensure!(
        known * 100 > samples * 85,
        "{known} of {samples} samples have a known truth"
    );
    // All other samples must have been judged as correct.
    ensure!(
        callers + uncertain >= known && uncertain * 100 < samples,
        "callers of {callers} of {known} are known, of {uncertain} they cannot be"
    );
    ensure!(
        unresolved * 200 < samples,
        "{unresolved} of {samples} samples are unresolved"
    );
    Ok(())
}

#[test]
fn every_sample_of_native_words_is_what_the_symbols_say() -> Result<()> {
    judged("areavm", "9973")
}

#[test]
fn every_sample_of_a_32_bit_process_is_what_the_symbols_say() -> Result<()> {
    judged("areavm32", "9973")
}
