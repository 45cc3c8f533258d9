//! Tests the attribution of every sample of a VM that varid does not know, and for which a program adds a kind of VM.
#![cfg(target_arch = "x86_64")]

use anyhow::{Context, Result, ensure};
use std::process::{Child, Command, Stdio};
use varid_tests::{beside_raw, judge, skip_without_root, testbed};

/// The number of samples in methods that are judged.
const ENOUGH: u64 = 5_000;

/// A stackvm that runs until this is dropped.
struct Vm(Child);

impl Drop for Vm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_sample_of_a_vm_that_a_program_brings_is_what_its_own_log_says() -> Result<()> {
    if skip_without_root("stackvm") {
        return Ok(());
    }
    let testbed = testbed()?;
    let folder = tempfile::tempdir()?;
    let (program, log) = (
        testbed.stackvm.join("program.stk"),
        folder.path().join("log"),
    );
    let vm = Command::new(testbed.stackvm.join("stackvm"))
        .arg(&program)
        .arg("1000000000")
        .arg(&log)
        .env("XDG_RUNTIME_DIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let mut vm = Vm(vm);
    let pid = vm.0.id();
    let is_whole = |log: String| log.ends_with("done\n");
    while !std::fs::read_to_string(&log).is_ok_and(is_whole) {
        ensure!(vm.0.try_wait()?.is_none(), "stackvm has ended");
        std::thread::yield_now();
    }
    let maps = folder.path().join("maps");
    std::fs::write(&maps, std::fs::read_to_string(format!("/proc/{pid}/maps"))?)?;
    let (mut known, mut samples, mut unresolved) = (0, 0, 0);
    for attempt in 0.. {
        let session = folder.path().join(format!("session{attempt}"));
        let recorded = Command::new(testbed.release.join("varid-stackvm"))
            .env("VARID_HOME", &testbed.home)
            .args(["record", "--duration", "2s", "--pid", &pid.to_string()])
            .args(beside_raw("9973"))
            .arg("-o")
            .arg(&session)
            .stdin(Stdio::null())
            .output()?;
        ensure!(
            recorded.status.success(),
            "{}",
            String::from_utf8_lossy(&recorded.stderr)
        );
        let counted = judge(
            "stackvm.py",
            [session.clone(), maps.clone(), log.clone(), program.clone()],
        )
        .with_context(|| String::from_utf8_lossy(&recorded.stderr).into_owned())?;
        println!("{counted}");
        let of = |name: &str| counted[name].as_u64().unwrap_or(0);
        ensure!(of("wrong") == 0 && of("method known") > 0, "{counted}");
        known += of("method known");
        samples += of("samples") - of("vm not ready");
        unresolved += of("unresolved");
        if known >= ENOUGH {
            break;
        }
    }
    println!("{known} of {samples} samples have a known truth, {unresolved} are unresolved");
    ensure!(
        unresolved * 100 < samples,
        "{unresolved} of {samples} samples are unresolved"
    );
    ensure!(
        known * 100 > samples * 70,
        "{known} of {samples} samples have a known truth"
    );
    Ok(())
}
