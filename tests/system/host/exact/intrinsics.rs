//! Tests that methods that HotSpot's compilers replace are counted with `--intrinsics expand`, and are leaves without it.

use super::programs::{Program, skip};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use varid_tests::{Scale, compile_class, printed, scale, testbed};

const INTRINSICS: Program = Program {
    class: "Intrinsics",
    arguments: &["30000"],
    threads: &["main"],
    left_out: &[],
};
const ROUNDS: u64 = 30_000;
/// What is compared.
const COUNTED: &str = "main;Intrinsics.main(java.lang.String[]);Intrinsics.counted(int);";

/// Returns the calls of all contexts below the counted method, by stack.
fn calls(session: &Path) -> Result<BTreeMap<String, u64>> {
    let mut varid = testbed()?.varid();
    varid.args(["export", "-f", "folded", "--signatures", "--no-lines"]);
    varid.args(["--measure", "calls", "-i"]).arg(session);
    let mut calls = BTreeMap::new();
    for line in printed(&mut varid)?.lines() {
        if let Some((stack, value)) = line.rsplit_once(' ')
            && let Some(stack) = stack.strip_prefix(COUNTED)
        {
            *calls.entry(stack.to_owned()).or_default() += value.parse::<u64>()?;
        }
    }
    Ok(calls)
}

#[test]
fn expanded_intrinsics_count_the_same_interpreted_and_compiled() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(INTRINSICS.class, folder.path())?;
    let run = |name: &str, options: &[&str], java: &str| -> Result<BTreeMap<String, u64>> {
        let session = folder.path().join(name);
        INTRINSICS.exact(folder.path(), &session, options, &[java])?;
        calls(&session)
    };
    let expand = ["--intrinsics", "expand"];
    let round = "Intrinsics.rounds(int);Intrinsics.round(int)";
    let compiled = run("mixed", &expand, "-Xmixed")?;
    for method in [
        "java.lang.Math.max(int, int)",
        "java.lang.Math.addExact(int, int)",
        "java.lang.Integer.bitCount(int)",
        "java.lang.Integer.valueOf(int)",
        "java.lang.StringBuilder.toString()",
        "java.util.Arrays.copyOf(int[], int);java.lang.Math.min(int, int)",
    ] {
        let found = compiled.get(&format!("{round};{method}"));
        ensure!(
            found == Some(&ROUNDS),
            "{method}: {found:?} in {compiled:#?}"
        );
    }
    let leaves = run("leaves", &[], "-Xmixed")?;
    let has_max = |calls: &BTreeMap<String, u64>| calls.keys().any(|it| it.contains("Math.max"));
    ensure!(
        leaves.get(round) == Some(&ROUNDS) && !has_max(&leaves),
        "{leaves:#?}"
    );
    let modes = match scale() {
        Scale::Gate => &["-Xint"][..],
        Scale::Long => &["-Xint", "-Xcomp"],
    };
    for mode in modes {
        let found = run(mode, &expand, mode)?;
        ensure!(found == compiled, "{mode}: {found:#?}, not {compiled:#?}");
    }
    Ok(())
}
