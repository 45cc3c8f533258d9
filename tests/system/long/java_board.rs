//! Tests that each sample of a Java program on the ARM board is attributed to methods that have called each other.

use anyhow::{Context, Result, ensure};
use varid_tests::{MOST_RUNS, SampleCounts, board_with_java};

/// The samples of the workload's methods that are judged with each option of the VM.
const ENOUGH: u64 = 5_000;
/// The interpreter, the first compiler and both, with numbers of rounds that take some seconds on the board.
const VM_OPTIONS: [(&str, u32); 3] = [
    ("-Xint", 16),
    ("-XX:TieredStopAtLevel=1", 120),
    ("-XX:+TieredCompilation", 150),
];

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
                .judge_java(option, rounds, "-e cycles -F 997 --shim bpf")
                .with_context(|| option.to_owned())?;
            println!("Java 17 on the board, {option}: {counted}");
            counts.add(&counted)?;
        }
        ensure!(counts.of("of the workload") >= ENOUGH, "{counts:?}");
        // As on x86-64, most of them while the VM starts.
        let is_reason = |end: &str| end.starts_with('[') && !end.ends_with("(native)");
        let ends = counts.beginning_with("ends: ");
        let reasons: u64 = ends
            .filter(|(end, _)| is_reason(end))
            .map(|(_, count)| count)
            .sum();
        let in_java = counts.of("in generated code");
        ensure!(reasons * 50 < in_java, "2 % end in a reason: {counts:?}");
    }
    Ok(())
}
