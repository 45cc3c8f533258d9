//! What `varid estimate` says of programs for RISC-V, compared with what they took in RTL.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tests::{printed, testbed};

/// Counts that are never estimated.
const COUNTS: [&str; 6] = [
    "instructions",
    "loads",
    "stores",
    "stack_accesses",
    "branches",
    "taken",
];
/// The cycles by which a processor without caches may be off: those of the exit, which the truth leaves out.
const FEW: u64 = 10;

/// What programs took on one processor: a file that `tests/rtl/record.sh` writes.
pub struct Truth {
    path: PathBuf,
    content: Value,
}

impl Truth {
    /// Reads the files of a folder.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let mut paths = std::fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>>>()?;
        paths.sort();
        let read = |path: PathBuf| -> Result<Self> {
            let content = serde_json::from_str(&std::fs::read_to_string(&path)?)
                .with_context(|| path.display().to_string())?;
            Ok(Self { path, content })
        };
        paths.into_iter().map(read).collect()
    }

    /// Returns the core's name.
    pub fn core(&self) -> Result<&str> {
        self.content["core"].as_str().context("no core")
    }

    /// Estimates each program, and prints a line for each that says by how much the cycles are off.
    pub fn check(&self, programs: &Path) -> Result<()> {
        let options = self.content["options"].as_array().context("no options")?;
        let options: Vec<_> = options.iter().filter_map(Value::as_str).collect();
        let truths = self.content["programs"]
            .as_object()
            .context("no programs")?;
        ensure!(!truths.is_empty(), "{}: no programs", self.path.display());
        let mut errors = 0.0;
        let mut complaints = Vec::new();
        for (name, truth) in truths {
            let elf = programs.join(name).with_extension("elf");
            ensure!(
                digest(&elf)? == truth["sha256"],
                "{name} is not the program that was simulated: run tests/rtl/record.sh"
            );
            let compared = Estimate::of(&elf, &options)
                .and_then(|estimate| self.compare(name, truth, &estimate));
            match compared {
                Ok(error) => errors += error,
                Err(error) => complaints.push(format!("{name}: {error:#}")),
            }
        }
        ensure!(
            complaints.is_empty(),
            "{}:\n{}",
            options.join(" "),
            complaints.join("\n")
        );
        let mean = errors / truths.len() as f64;
        ensure!(mean <= 0.01, "{}: mean error {mean}", self.path.display());
        Ok(())
    }

    /// Returns the error of the cycles, as a part of them.
    fn compare(&self, name: &str, truth: &Value, estimate: &Estimate) -> Result<f64> {
        let Estimate { summary, functions } = estimate;
        for count in COUNTS {
            ensure!(
                summary[count] == truth[count],
                "{count}: {} instead of {}",
                summary[count],
                truth[count]
            );
        }
        // Instruction caches load lines of paths that are not taken.
        if !truth["dcache_misses"].is_null() {
            ensure!(
                summary["dcache_misses"] == truth["dcache_misses"],
                "misses of the data cache: {} instead of {}",
                summary["dcache_misses"],
                truth["dcache_misses"]
            );
        }
        let cycles = truth["cycles"].as_u64().context("no cycles")?;
        let estimated = summary["cycles"].as_u64().context("no estimate")?;
        let off = estimated.abs_diff(cycles);
        let part = off as f64 / cycles as f64;
        println!(
            "{}: {name}: {estimated} cycles instead of {cycles}: {:.3} %",
            self.path.file_stem().unwrap_or_default().display(),
            100.0 * part
        );
        let most = self.most(cycles)?;
        ensure!(off <= most, "{estimated} cycles instead of {cycles}");
        // Its bubbles are counted where they leave the pipeline.
        if self.core()? != "vexriscv" {
            for (function, cycles) in functions_of(truth)? {
                let estimated = functions.get(&function).copied().unwrap_or_default();
                ensure!(
                    estimated.abs_diff(cycles) <= most,
                    "{function}: {estimated} cycles instead of {cycles}"
                );
            }
        }
        Ok(part)
    }

    /// The cycles by which an estimate may be off.
    fn most(&self, cycles: u64) -> Result<u64> {
        Ok(match self.core()? {
            "vexriscv" => cycles / 20,
            _ => FEW,
        })
    }
}

/// What varid finds of a program.
struct Estimate {
    /// What it prints.
    summary: Value,
    /// The cycles of each function, without those that it calls.
    functions: BTreeMap<String, u64>,
}

impl Estimate {
    /// Runs a program on the processor of these options.
    fn of(elf: &Path, options: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let session = folder.path().join("session");
        let mut varid = testbed()?.varid();
        varid.arg("estimate").args(options).arg("-o").arg(&session);
        let summary = json(varid.args(["--summary", "json"]).arg(elf))?;
        let mut report = testbed()?.varid();
        report.arg("report").arg(&session);
        let report = json(report.args(["--by", "symbol", "--format", "json"]))?;
        let rows = report["rows"].as_array().context("no rows")?;
        let mut functions = BTreeMap::new();
        for row in rows {
            let cycles = row["measures"]["cycles"]["self"].as_u64();
            // Static functions may have the same name.
            if let (Some(name), Some(cycles)) = (row["symbol"].as_str(), cycles) {
                *functions.entry(name.to_owned()).or_default() += cycles;
            }
        }
        Ok(Self { summary, functions })
    }
}

/// Returns the cycles of each function.
fn functions_of(truth: &Value) -> Result<BTreeMap<String, u64>> {
    let functions = truth["functions"].as_object().context("no functions")?;
    let cycles = |(name, cycles): (&String, &Value)| Some((name.clone(), cycles.as_u64()?));
    functions
        .iter()
        .map(cycles)
        .collect::<Option<_>>()
        .context("no cycles")
}

/// Returns what a command prints.
pub fn json(command: &mut Command) -> Result<Value> {
    let output = command.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).with_context(|| errors.into_owned())
}

/// Returns the SHA-256 of a file.
fn digest(file: &Path) -> Result<String> {
    let line = printed(Command::new("sha256sum").arg(file))?;
    Ok(line.split(' ').next().unwrap_or_default().to_owned())
}
