//! Tests that runs on the board are deterministic. `make board-cost` and `make paper` rely on it.

use anyhow::{Result, ensure};
use varid_tests::{Processor, run_on_board};

#[test]
fn two_runs_on_the_board_are_alike_to_the_nanosecond_while_varid_records() -> Result<()> {
    // Prints what the kernel shows of time, random numbers and addresses, and the recording, which contains all three.
    let script = "#!/bin/sh
set -e
./varid record -e cycles -o /tmp/session -- ./artvm --timed 2 --dex math.dex --name org.example.math \
    org.example.math.Main run 1 2>&1
sha1sum /tmp/session/perf.data
cat /proc/sys/kernel/random/uuid
grep '^now at' /proc/timer_list
";
    let Some(consoles) = run_on_board(Processor::Arm64, "two runs", script, 2)? else {
        return Ok(());
    };
    println!("{}", consoles[0]);
    ensure!(consoles[0] == consoles[1], "{consoles:?}");
    ensure!(consoles[0].contains("samples in /tmp/session"));
    Ok(())
}
