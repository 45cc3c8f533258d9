//! Tests that every sample on the ARM board in ahead-of-time compiled code is attributed to the correct methods.

use anyhow::{Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use varid_tests::{App, BoardCode, Scale, board, scale};

/// Runs of a workload's method, and the number of calls. They take three seconds on the board, one of which varid needs
/// to load its program.
const WORKLOADS: [(&str, u32, u32); 5] = [
    ("math", 1, 64),
    ("truth", 20, 12),
    ("vm", 6, 8),
    ("cradle", 30, 12),
    ("scene", 8, 12),
];

/// Returns the oracle's counts, summed over all workloads and kinds of code. None without a board.
fn counted(stack: &str) -> Result<Option<BTreeMap<String, u64>>> {
    let Some(board) = board("compiled code on the board")? else {
        return Ok(None);
    };
    let kinds = match scale() {
        Scale::Gate => 1,
        Scale::Long => BoardCode::ALL.len(),
    };
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for code in BoardCode::ALL.into_iter().take(kinds) {
        for (name, rounds, calls) in WORKLOADS {
            let app = App::new(name, "run", rounds)?
                .option("--timed")
                .option(calls.to_string());
            let app = board.compiled(app, code)?;
            let options = format!("-e cycles -F 997 --shim bpf --stack {stack}");
            let counts = board.judge_compiled(&app, &options)?;
            println!("{name} in {code:?}, {stack}: {counts}");
            for (what, count) in counts.as_object().into_iter().flatten() {
                let count = Value::as_u64(count).unwrap_or(0);
                *all.entry(what.clone()).or_default() += count;
            }
        }
    }
    println!("{stack}: {all:?}");
    Ok(Some(all))
}

#[test]
fn every_sample_on_the_board_in_compiled_code_is_what_its_symbols_say() -> Result<()> {
    let Some(all) = counted("full")? else {
        return Ok(());
    };
    let of = |what: &str| all.get(what).copied().unwrap_or(0);
    let judged = of("samples").saturating_sub(of("vm not ready"));
    ensure!(scale() == Scale::Gate || judged >= 20_000, "{all:?}");
    ensure!(of("wrong") == 0, "{all:?}");
    for what in [
        "approximate",
        "compiled, partial",
        "compiled, edges",
        "inlined edges",
    ] {
        ensure!(of(what) > 0, "no {what}: {all:?}");
    }
    for what in ["unattributed", "broken stacks"] {
        ensure!(of(what) * 200 < judged, "0.5 % {what}: {all:?}");
    }
    // A signal's stack is expected in about 1 % of the samples of the workload that throws. ART touches each page of the main thread's stack when
    // it starts: 41 to 53 samples of the 3,200 to 4,700 of a run, one in a hundred.
    for what in ["signal stack", "a thread's stack is touched"] {
        ensure!(of(what) * 50 < judged, "2 % {what}: {all:?}");
    }
    Ok(())
}

#[test]
fn walked_callers_in_compiled_code_on_the_board_are_called_as_their_bytecode_says() -> Result<()> {
    let Some(all) = counted("vertical")? else {
        return Ok(());
    };
    let of = |what: &str| all.get(what).copied().unwrap_or(0);
    ensure!(of("wrong") == 0, "{all:?}");
    ensure!(of("calls") > 10_000, "{all:?}");
    Ok(())
}
