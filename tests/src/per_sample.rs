//! Compares each sample of an app in ART with the kernel's registers. `per_sample.py` judges recordings until there are
//! enough samples.

use crate::app::App;
use crate::oracle::judge;
use crate::scale::{Scale, scale};
use crate::session::{Recording, beside_raw, processes_noted, record};
use anyhow::{Context, Result, anyhow, ensure};
use std::collections::BTreeMap;

/// The maximum number of runs, far more than are needed for enough samples.
pub const MOST_RUNS: usize = 60;

/// The counts of an oracle, summed over runs.
#[derive(Debug, Default)]
pub struct SampleCounts {
    sums: BTreeMap<String, u64>,
    /// Whether the VM was found early in at least one run. On a busy machine this fails in some of them. For ART 14,
    /// loading the frame walker takes one of the few seconds of a run.
    prompt: bool,
}

impl SampleCounts {
    /// Adds the counts of a run.
    pub fn add(&mut self, counted: &serde_json::Value) -> Result<()> {
        for (name, count) in counted.as_object().context("no JSON object")? {
            *self.sums.entry(name.clone()).or_default() += count.as_u64().context("no count")?;
        }
        let of = |name: &str| counted[name].as_u64().unwrap_or(0);
        self.prompt |= of("vm not ready") * 3 < of("samples");
        Ok(())
    }

    /// Returns the count with this name of the oracle.
    pub fn of(&self, name: &str) -> u64 {
        self.sums.get(name).copied().unwrap_or(0)
    }

    /// Returns the counts whose names have this prefix, without the prefix.
    pub fn beginning_with(&self, prefix: &str) -> impl Iterator<Item = (&str, u64)> {
        let all = self.sums.iter();
        all.filter_map(move |(name, count)| Some((name.strip_prefix(prefix)?, *count)))
    }

    /// Returns the number of samples of a VM that varid has found. Before that, nothing is known of it, however long
    /// varid waits for a processor.
    pub fn judged(&self) -> u64 {
        let not_ready = self.of("vm not ready");
        self.of("samples").saturating_sub(not_ready)
    }

    /// Returns true if at most one in a thousand stacks ends without a reason before a thread's outermost frame. ART
    /// links a new interpreter frame one instruction after it has made it the innermost one, so a sample between the
    /// two sees no callers.
    pub fn ends_elsewhere_seldom(&self) -> bool {
        self.of("ends: elsewhere") <= 1 + self.judged() / 1000
    }

    /// Checks that no sample is wrong, that the truth is known for more than `percent` of them, and that fewer than
    /// `unresolved` per mille are unresolved.
    pub fn check(&self, known: &str, percent: u64, unresolved: u64) -> Result<()> {
        let judged = self.judged();
        ensure!(self.of("wrong") == 0);
        ensure!(
            self.ends_elsewhere_seldom(),
            "too many stacks end without a reason where no thread begins: {self:?}"
        );
        ensure!(self.prompt, "the VM is never seen in time: {self:?}");
        ensure!(
            self.of(known) * 100 > judged * percent,
            "too few samples have a known truth: {self:?}"
        );
        ensure!(
            self.of("unresolved") * 1000 < judged * unresolved,
            "{unresolved} in 1,000 or more unresolved: {self:?}"
        );
        ensure!(
            self.of("frame not linked yet, method missing") * 1000 < judged,
            "1 in 1,000 or more without the method that is called: {self:?}"
        );
        ensure!(
            self.of("nterp window, unresolved") * 20 < judged,
            "5 % or more unresolved in the middle of nterp's calls: {self:?}"
        );
        Ok(())
    }
}

/// Judges a run in ART. None if it ended before its mappings had been read, here or by varid, which adds a note about
/// the process.
pub fn judge_art(app: &App, recording: &Recording) -> Result<Option<serde_json::Value>> {
    if !recording.maps().exists() {
        return Ok(None);
    }
    let notes = processes_noted(&recording.session())?;
    if notes.iter().any(|note| note.contains("not long enough")) {
        return Ok(None);
    }
    let arguments = [
        recording.session(),
        recording.maps(),
        app.traced()?,
        app.dex(),
        app.boot_dex(),
    ];
    judge("per_sample.py", arguments).map(Some)
}

/// Returns workloads in which the start of the VM is the smallest part. They take half a second each, and a little less
/// than a second in the long lane.
pub fn interpreted_workloads() -> Result<Vec<App>> {
    let rounds = match scale() {
        Scale::Gate => [8, 60, 1500, 190, 65],
        Scale::Long => [14, 120, 3000, 380, 130],
    };
    let workloads = ["math", "truth", "alike", "cradle", "scene"]
        .into_iter()
        .zip(rounds);
    workloads
        .map(|(name, rounds)| App::new(name, "run", rounds))
        .collect()
}

/// Records the apps until there are enough samples, and compares each sample with the registers that the kernel
/// recorded.
pub fn judge_runs_in_art(apps: &[App], rate: u32, enough: u64) -> Result<SampleCounts> {
    let mut counts = SampleCounts::default();
    for (run, app) in apps.iter().cycle().take(MOST_RUNS).enumerate() {
        // All apps run at least once.
        if counts.judged() >= enough && run >= apps.len() {
            break;
        }
        let recording = record(app, &beside_raw(&rate.to_string()))?;
        let counted = judge_art(app, &recording)
            .map_err(|error| anyhow!("{} at {rate} Hz: {error:#}", app.name))?;
        println!("{} at {rate} Hz: {counted:?}", app.name);
        counted.iter().try_for_each(|counted| counts.add(counted))?;
    }
    ensure!(counts.judged() >= enough, "too few samples: {counts:?}");
    Ok(counts)
}
