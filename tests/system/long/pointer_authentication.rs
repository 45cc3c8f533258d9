//! Tests unwinding of stacks with signed return addresses, by DWARF and by frame pointers, on a processor that checks
//! them.
//!
//! The program is the ground truth: each of its levels has one caller, so the level of an instruction determines all
//! callers.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tests::{Processor, run_on_other_board};

/// The builds of the program, named by what leads from a frame to its caller.
const BUILDS: [(&str, &[&str]); 2] = [
    (
        "dwarf",
        &["-fasynchronous-unwind-tables", "-fomit-frame-pointer"],
    ),
    (
        "frames",
        &[
            "-fno-asynchronous-unwind-tables",
            "-fno-unwind-tables",
            "-fno-omit-frame-pointer",
        ],
    ),
];

/// The callers of the outermost level: functions of the program and of the C library.
const BEGINNING: [&str; 4] = [
    "main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "_start",
];

/// Prints each stack, leaf first, on a line of its own, with its number of samples.
const JOB: &str = r#"#!/bin/sh
exec 2>&1
export VARID_HOME=/tmp/varid
for build in dwarf frames; do
    ./varid record -e cycles:u -F 997 --stack full -o /tmp/$build -- ./signed-$build 5000
    perf script -f -F ip,sym -i /tmp/$build/perf.data |
        awk 'NF { line = line " " $2; next } line { print line; line = "" } END { if (line) print line }' |
        sort | uniq -c | sed "s/^/stack $build/"
done
"#;

/// Compiles the program.
fn build(folder: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let program = folder.join(format!("signed-{name}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/signed.c");
    let mut gcc = Command::new("aarch64-linux-gnu-gcc");
    gcc.args([
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-static",
    ])
    .arg("-mbranch-protection=standard")
    .args(options)
    .arg("-o")
    .args([&program, &source]);
    ensure!(gcc.status()?.success(), "{gcc:?}");
    Ok(program)
}

/// Samples of the program's levels.
#[derive(Debug, Default)]
struct Counts {
    /// With all callers, and no other frames.
    whole: u64,
    /// Those in the last level, which has no frame. They are included in `whole`.
    frameless: u64,
    /// In the start and end of the program.
    outside: u64,
    /// The others by their stack.
    others: BTreeMap<String, u64>,
}

impl Counts {
    fn add(&mut self, samples: u64, stack: &[&str]) {
        let Some(level) = stack.first().and_then(|leaf| leaf.strip_prefix("level")) else {
            self.outside += samples;
            return;
        };
        let callers = (0..level.parse::<usize>().unwrap_or(0)).rev();
        let levels = callers.map(|level| format!("level{level}"));
        let expected: Vec<_> = levels.chain(BEGINNING.map(str::to_owned)).collect();
        if stack[1..] == expected {
            self.whole += samples;
            self.frameless += samples * u64::from(level == "6");
        } else {
            *self.others.entry(stack.join(" ")).or_default() += samples;
        }
    }
}

#[test]
fn signed_return_addresses_lead_to_the_callers_on_a_processor_that_checks_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let differs = || {
        let programs = BUILDS.map(|(name, options)| build(folder.path(), name, options));
        let programs = programs.into_iter().collect::<Result<Vec<_>>>()?;
        // Signed by an implementation-defined algorithm. The architected one would take most of QEMU's time.
        Ok((programs, vec!["-cpu".into(), "max,pauth-impdef=on".into()]))
    };
    let job = run_on_other_board(Processor::Arm64, "pointer_authentication", JOB, differs)?;
    let Some(console) = job else {
        return Ok(());
    };
    let mut found: BTreeMap<&str, Counts> = BTreeMap::new();
    for line in console.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("stack") {
            continue;
        }
        let (build, samples) = (
            words.next().context("a build")?,
            words.next().context("a count")?,
        );
        let stack: Vec<_> = words.collect();
        found
            .entry(build)
            .or_default()
            .add(samples.parse()?, &stack);
    }
    for (build, _) in BUILDS {
        let counts = found.get(build).with_context(|| console.clone())?;
        println!("pointer_authentication: {build}: {counts:?}");
        let others: u64 = counts.others.values().sum();
        ensure!(
            counts.whole > 300 && counts.frameless > 30,
            "{build}: {counts:?}"
        );
        ensure!(counts.outside * 20 < counts.whole, "{build}: {counts:?}");
        // While a frame is set up or torn down, its frame pointer cannot be followed.
        let tolerated = if build == "dwarf" {
            0
        } else {
            counts.whole / 100
        };
        ensure!(others <= tolerated, "{build}: {counts:?}");
    }
    let mut signed = 0;
    for line in console.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let Some(at) = words
            .windows(2)
            .position(|pair| pair == ["return", "addresses"])
        else {
            continue;
        };
        // Printed behind a progress bar: SIGNED of ALL return addresses are signed. Those of the C library are not.
        let of = |back: usize| -> Result<u64> {
            let digits = words[at - back].trim_start_matches(|c: char| !c.is_ascii_digit());
            Ok(digits.parse()?)
        };
        ensure!(of(3)? * 3 >= of(1)? * 2, "{line}");
        signed += 1;
    }
    ensure!(signed == BUILDS.len(), "{console}");
    Ok(())
}
