//! Is every sample attributed to the method and bytecode that ran?

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use varid_tests::{App, Recording, attach_to, judge, record, skip_without_root, testbed};

/// What an oracle counted, summed over runs.
#[derive(Debug, Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn add(&mut self, counted: &serde_json::Value) -> Result<()> {
        for (name, count) in counted.as_object().context("no JSON object")? {
            *self.0.entry(name.clone()).or_default() += count.as_u64().context("no count")?;
        }
        Ok(())
    }

    fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// None wrong, more than `percent` of the samples with a truth that is known, less than 0.5 % unresolved.
    fn check(&self, known: &str, percent: u64) -> Result<()> {
        ensure!(self.of("wrong") == 0);
        ensure!(
            self.of(known) * 100 > self.of("samples") * percent,
            "too few samples have a known truth: {self:?}"
        );
        ensure!(
            self.of("unresolved") * 200 < self.of("samples"),
            "0.5 % or more unresolved: {self:?}"
        );
        ensure!(
            self.of("nterp window, unresolved") * 20 < self.of("samples"),
            "5 % or more unresolved in the middle of nterp's calls: {self:?}"
        );
        Ok(())
    }
}

/// Judges a run in ART.
fn judge_art(app: &App, recording: &Recording) -> Result<serde_json::Value> {
    judge(
        "per_sample.py",
        [
            recording.session(),
            recording.maps(),
            app.dex(),
            testbed()?.boot_dex(),
        ],
    )
}

/// Samples at a rate until there are enough, each compared with the registers that the kernel recorded.
fn art(rate: u32, enough: u64) -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    // Some four seconds each.
    let apps = [
        App::new("math", "run", 100)?,
        App::new("truth", "run", 900)?,
        App::new("cradle", "run", 3000)?,
    ];
    let mut counts = Counts::default();
    for (run, app) in apps.iter().cycle().enumerate() {
        // All of them at least once.
        if counts.of("samples") >= enough && run >= apps.len() {
            break;
        }
        let recording = record(
            app,
            &["-F", &rate.to_string(), "--shim", "bpf", "--keep-raw"],
        )?;
        let counted =
            judge_art(app, &recording).with_context(|| format!("{} at {rate} Hz", app.name))?;
        println!("{} at {rate} Hz: {counted}", app.name);
        counts.add(&counted)?;
    }
    println!("ART at {rate} Hz: {counts:?}");
    counts.check("bytecode known", 25)
}

#[test]
fn every_sample_in_art_at_1_khz_is_what_the_registers_say() -> Result<()> {
    art(1000, 10_000)
}

#[test]
fn every_sample_in_art_at_10_khz_is_what_the_registers_say() -> Result<()> {
    art(10_000, 100_000)
}

/// The same in the interpreter in which every method is a native function: its symbol is the truth.
fn shadow(rate: u32, enough: u64) -> Result<()> {
    if skip_without_root("attribution") {
        return Ok(());
    }
    let program = testbed()?.shadowvm.join("shadowvm");
    let dex = testbed()?.shadowvm.join("shadow.dex");
    let mut counts = Counts::default();
    while counts.of("samples") < enough {
        let mut vm = Command::new(&program);
        vm.arg("--dex").arg(&dex).args([
            "--name",
            "org.example.shadow",
            "--rounds",
            "24",
            "--threads",
            "1",
        ]);
        let options = ["-F", &rate.to_string(), "--shim", "bpf", "--keep-raw"];
        let files = ["varid-tunnel".to_owned(), dex.display().to_string()];
        let (recording, _) = attach_to(vm.stdin(Stdio::null()), &files, &options)?;
        let counted = judge(
            "shadow.py",
            [recording.session(), recording.maps(), program.clone()],
        )?;
        counts.add(&counted)?;
    }
    println!("shadow interpreter at {rate} Hz: {counts:?}");
    counts.check("method known", 90)
}

#[test]
fn every_sample_in_the_shadow_interpreter_at_1_khz_is_what_the_symbols_say() -> Result<()> {
    shadow(1000, 10_000)
}

#[test]
fn every_sample_in_the_shadow_interpreter_at_10_khz_is_what_the_symbols_say() -> Result<()> {
    shadow(10_000, 100_000)
}
