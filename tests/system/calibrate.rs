//! What a table of `varid calibrate` has, whatever the times on this machine are.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;
use varid_tests::{JDK, testbed};

/// A cost with its interval, in nanoseconds.
pub type Cost = [f64; 3];

/// What a calibration has printed, and the costs in its table.
pub struct Calibration {
    /// Standard output.
    pub printed: String,
    /// The costs by their keys.
    pub costs: BTreeMap<String, Cost>,
}

impl Calibration {
    /// Runs a calibration of Debian 12's JDK with these options.
    pub fn of_hotspot(options: &[&str], folder: &Path) -> Result<Self> {
        let vm = format!("{JDK}/java -Xint -cp {{classpath}} {{class}}");
        Self::run(&vm, options, folder)
    }

    /// Runs a calibration of a VM with these options.
    pub fn run(vm: &str, options: &[&str], folder: &Path) -> Result<Self> {
        let table = folder.join("table.toml");
        let mut command = testbed()?.varid();
        command.args(["calibrate", "--vm", vm]).args(options);
        let output = command.arg("-o").arg(&table).output()?;
        ensure!(output.status.success(), "{}", errors(&output));
        let text = std::fs::read_to_string(&table)?;
        let (head, costs) = text.split_once("\n[cost]\n").context("no costs")?;
        ensure!(head.contains("\nunit = \"ns\"\n"), "{head}");
        let lines = costs.lines().filter(|line| line.contains(" = { "));
        Ok(Self {
            printed: String::from_utf8(output.stdout)?,
            costs: lines.map(cost).collect::<Result<_>>()?,
        })
    }

    /// Checks that each cost lies in its interval, and that these keys have one.
    pub fn check(&self, keys: &[&str]) -> Result<()> {
        for (key, [value, low, high]) in &self.costs {
            let is_ordered = 0.0 <= *low && low <= value && value <= high && high.is_finite();
            ensure!(is_ordered, "{key}: {value} in {low} to {high}");
        }
        for key in keys {
            ensure!(self.costs.contains_key(*key), "{key} has no cost");
        }
        Ok(())
    }

    /// Returns r of the two clocks, as it is printed.
    pub fn r(&self) -> Result<f64> {
        let (_, rest) = self.printed.split_once("r = ").context("no second clock")?;
        let number = rest.split(',').next().unwrap_or_default();
        Ok(number.parse()?)
    }
}

/// Reads a line such as `iadd = { value = 0.8, low = 0.7, high = 0.9, n = 60 }`.
fn cost(line: &str) -> Result<(String, Cost)> {
    let (key, fields) = line.split_once(" = { ").context("no key")?;
    let value = |name: &str| -> Result<f64> {
        let (_, rest) = fields
            .split_once(&format!("{name} = "))
            .with_context(|| format!("{name} in {line}"))?;
        Ok(rest.split([',', ' ']).next().unwrap_or_default().parse()?)
    };
    Ok((
        key.trim_matches('"').to_owned(),
        [value("value")?, value("low")?, value("high")?],
    ))
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
