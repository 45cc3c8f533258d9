//! Tests that each sample of a Java program on the ARM board is attributed to methods that have called each other.

use anyhow::{Context, Result, ensure};
use varid_tests::{MOST_RUNS, SampleCounts, board_with_java};

/// The samples of the workload's methods that are judged with each option of the VM.
const ENOUGH: u64 = 5_000;
/// The interpreter, the first compiler and both, with numbers of rounds that take half a minute on the board.
const VM_OPTIONS: [(&str, u32); 3] = [
    ("-Xint", 120),
    ("-XX:TieredStopAtLevel=1", 1_000),
    ("-XX:+TieredCompilation", 1_000),
];
/// A rate at which varid keeps up with two threads on the board's only processor.
const OPTIONS: &str = "-e cycles -F 199 --shim bpf";

#[test]
fn every_sample_of_java_on_the_board_is_of_methods_that_called_each_other() -> Result<()> {
    let Some(board) = board_with_java("Java on the board")? else {
        return Ok(());
    };
    for (option, rounds) in VM_OPTIONS {
        let mut counts = SampleCounts::default();
        for _ in 0..MOST_RUNS {
            if counts.of("of the workload") >= ENOUGH {
                break;
            }
            let counted = board
                .judge_java(option, rounds, OPTIONS)
                .with_context(|| option.to_owned())?;
            println!("Java 17 on the board, {option}: {counted}");
            counts.add(&counted)?;
        }
        ensure!(counts.of("of the workload") >= ENOUGH, "{counts:?}");
        // As on x86-64, most of them while the VM starts.
        let is_reason = |end: &str| end.starts_with('[') && !end.ends_with("(native)");
        let ends = counts.beginning_with("ends: ");
        let reasons = ends.filter(|(end, _)| is_reason(end));
        let reasons: u64 = reasons.map(|(_, count)| count).sum();
        let in_java = counts.of("in generated code");
        // What is read when the VM has ended already.
        let gone = counts.of("ends: [vm-gone]");
        ensure!(gone * 10 < in_java, "varid is behind: {counts:?}");
        let others = reasons.saturating_sub(gone);
        ensure!(others * 50 < in_java, "2 % end in a reason: {counts:?}");
    }
    Ok(())
}
