//! Tests that a PMU without a working interrupt is detected. The ground truth is perf's count of the same deterministic
//! program, without sampling.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use varid_tests::{Processor, printed, run_on_other_board};

/// A loop of busybox's shell, about 178 million cycles of user code.
const WORK: &str = "/bin/busybox sh -c 'i=0; while [ $i -lt 6000 ]; do i=$((i+1)); done'";

/// The commands on a board whose PMU interrupt is not connected.
const JOB: &str = r#"#!/bin/sh
exec 2>&1
export VARID_HOME=/tmp/varid
perf stat -x, -e cycles:u WORK 2>&1 | sed -n 's/^\([0-9]*\),.*cycles:u.*/counted \1/p'
for events in "" "-e cycles:u"; do
    ./varid record $events -o /tmp/session -- WORK
    perf script -f -F event,period -G -i /tmp/session/perf.data |
        awk '{n[$2]++; sum[$2] += $1} END {for (e in n) print "sampled", e, n[e], sum[e]}'
done
./varid doctor
perf record -q -e cycles:u -o /tmp/perf.data -- WORK
echo "perf has $(perf script -i /tmp/perf.data | wc -l) samples"
"#;

/// Makes the board's own device tree, with the PMU at a wrong interrupt line.
fn deaf_tree(tree: &Path) -> Result<()> {
    let dump = format!("virt,gic-version=3,dumpdtb={}", tree.display());
    let board = "-cpu cortex-a57,pmu=on -m 1024 -smp 1 -nodefaults -nographic";
    printed(
        Command::new("qemu-system-aarch64")
            .args(["-M", &dump])
            .args(board.split(' ')),
    )?;
    let line = ["/pmu", "interrupts", "1", "6", "104"];
    printed(
        Command::new("fdtput")
            .args(["-t", "x"])
            .arg(tree)
            .args(line),
    )?;
    Ok(())
}

#[test]
fn a_pmu_whose_interrupt_does_not_arrive_gives_its_counts_to_the_timer() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("board.dtb");
    let job = JOB.replace("WORK", WORK);
    let options = || {
        deaf_tree(&tree)?;
        Ok((Vec::new(), vec!["-dtb".into(), tree.clone().into()]))
    };
    let Some(console) = run_on_other_board(Processor::Arm64, "pmu", &job, options)? else {
        return Ok(());
    };
    let said = console.replace('\r', "");
    for needle in [
        "the PMU counts cycles, but its overflow interrupt does not arrive: sampling cpu-clock",
        "the PMU counts 'cycles:u', but its overflow interrupt does not arrive",
        "sampled cpu-clock: ",
        "sampled cpu-clock:u: ",
        "its overflow interrupt DOES NOT ARRIVE",
        "event    cpu-clock: the PMU counts cycles, but",
        "perf has 0 samples",
    ] {
        ensure!(said.contains(needle), "'{needle}' in\n{said}");
    }
    let said_of = |what: &str| -> Result<u64> {
        let mut lines = said.lines();
        let words = lines.find_map(|line| line.strip_prefix(what));
        let last = words.and_then(|words| words.split(' ').next_back());
        Ok(last
            .with_context(|| format!("{what} in\n{said}"))?
            .parse()?)
    };
    let (counted, sampled) = (said_of("counted ")?, said_of("sampled cycles:u: ")?);
    ensure!(
        sampled.abs_diff(counted) * 100 <= counted * 4,
        "{sampled} cycles read by the timer, {counted} counted"
    );
    Ok(())
}
