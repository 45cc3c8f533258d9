//! Tests that the kernel module on the board does what the BPF program does, and leaves nothing behind.

use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use varid_tests::{App, Board, Methods, Processor, board_with_module, methods_by_varid};

const TEST: &str = "module";

/// Cycles of the soak test here. `make board-module-soak` runs 10,000.
const CYCLES: u32 = 30;

/// Returns a shell function that runs an app for which two sessions wait: one by BPF, one by the module. The period is
/// fixed because, with two counters at a rate, the emulated PMU gives the second one fewer interrupts.
fn both_record(session: &str) -> String {
    let record = |shim: &str, session: &str| {
        format!(
            "./varid record --shim {shim} -e cycles -c 1000000 --keep-raw -o {session} --pid $app 2>{session}.log"
        )
    };
    format!(
        "cd {programs}; rm -rf {session}.* go; mkfifo go
        both() {{
            sh -c 'read -r line <go; exec \"$@\"' sh \"$@\" & app=$!
            {bpf} & bpf=$!
            {module} & module=$!
            until grep -q profiling {session}.log && grep -q profiling {session}.bpf.log; do
                kill -0 $bpf && kill -0 $module || {{ cat {session}*.log; kill $app; return 1; }}
            done
            echo >go
            wait $bpf && wait $module
        }}
        both",
        programs = Board::PROGRAMS,
        bpf = record("bpf", &format!("{session}.bpf")),
        module = record("module", session),
    )
}

#[test]
fn the_module_and_bpf_are_right_of_the_same_run_and_give_the_same_shares() -> Result<()> {
    let Some(board) = board_with_module(Processor::Arm64, TEST)? else {
        return Ok(());
    };
    let session = Board::SESSION;
    let app = App::new("math", "run", 2)?;
    board.check(&format!("insmod {}/varid.ko", Board::PROGRAMS))?;
    board.record_by(&both_record(session), &app)?;
    board.check("rmmod varid")?;
    let here = tempfile::tempdir()?;
    let judged = |recording: &str, name: &str| -> Result<(u64, Methods)> {
        let counts = board.judge_art(recording, &app)?;
        println!("{TEST}: by {name}: {counts}");
        let of = |what: &str| counts[what].as_u64().unwrap_or(0);
        ensure!(of("bytecode known") > 500, "{counts}");
        let to = here.path().join(name);
        board.pull(recording, &to)?;
        Ok((of("samples"), methods_by_varid(&to)?))
    };
    let (by_module, module) = judged(session, "module")?;
    let (by_bpf, bpf) = judged(&format!("{session}.bpf"), "bpf")?;
    // Both sample the same cycles, one sample per million. The task that is interrupted varies by chance: about one in
    // a hundred more or fewer.
    ensure!(
        by_module.abs_diff(by_bpf) * 20 < by_module,
        "{by_module} samples by the module, {by_bpf} by BPF"
    );
    let of = |methods: &Methods| methods.values().sum::<u64>() as f64;
    let (n, m) = (of(&module), of(&bpf));
    println!("{TEST}: {n} samples of the app's methods by the module, {m} by BPF");
    ensure!(n > 500.0 && m > 500.0, "{module:?}\n{bpf:?}");
    let names: BTreeSet<&String> = module.keys().chain(bpf.keys()).collect();
    let counts = names.into_iter().map(|name| {
        let of = |methods: &Methods| methods.get(name).map_or(0.0, |n| *n as f64);
        (name, of(&module), of(&bpf))
    });
    // The normal distribution is a poor approximation for fewer samples.
    let compared: Vec<_> = counts.filter(|(_, a, b)| a + b >= 20.0).collect();
    // By chance, one run in a thousand million has a method beyond the bound: 2 exp(-x*x/2) exceeds the probability
    // beyond x standard deviations.
    let beyond = 1e-9 / compared.len() as f64;
    let deviations = (-2.0 * (beyond / 2.0).ln()).sqrt();
    for (name, a, b) in compared {
        let p = (a + b) / (n + m);
        let bound = deviations * (p * (1.0 - p) * (1.0 / n + 1.0 / m)).sqrt();
        ensure!(
            (a / n - b / m).abs() <= bound,
            "{name}: {a} of {n} by the module, {b} of {m} by BPF"
        );
    }
    board.kernel_is_content()
}

/// In the shadow interpreter and in the VM with Dalvik's frames, every method is a native function, so the symbol at
/// the ip is the ground truth.
#[test]
fn every_sample_of_the_module_is_the_method_that_ran() -> Result<()> {
    let Some(board) = board_with_module(Processor::Arm64, TEST)? else {
        return Ok(());
    };
    board.check(&format!("insmod {}/varid.ko", Board::PROGRAMS))?;
    let counts = board.judge_shadow("shadowvm", "--shim module -e cycles -F 997")?;
    println!("{TEST}: {counts}");
    let counts = board.judge_areas("--shim module -e cycles -F 997")?;
    board.check("rmmod varid")?;
    println!("{TEST}, frames as Dalvik's: {counts}");
    board.kernel_is_content()
}

#[test]
fn a_tunnel_is_read_and_not_inherited() -> Result<()> {
    let Some(board) = board_with_module(Processor::Arm64, TEST)? else {
        return Ok(());
    };
    let said = board.check(&format!(
        "cd {}; insmod varid.ko && ./tunnel; status=$?; rmmod varid; exit $status",
        Board::PROGRAMS
    ))?;
    println!("{TEST}: {said}");
    board.kernel_is_content()
}

#[test]
fn a_killed_daemon_leaves_nothing_and_many_lives_neither() -> Result<()> {
    let Some(board) = board_with_module(Processor::Arm64, TEST)? else {
        return Ok(());
    };
    let programs = Board::PROGRAMS;
    // Killed once its session is running, according to the manifest.
    board.check(&format!(
        "cd {programs}; rm -rf killed; insmod varid.ko
        ./varid record --shim module -o killed -- sh -c 'yes >/dev/null' & varid=$!
        until [ -s killed/session.json ] && pidof yes >/dev/null; do
            read -r _ _ state _ </proc/$varid/stat && [ \"$state\" != Z ] || exit
        done
        kill -9 $varid; wait $varid
        kill -9 $(pidof yes)
        tries=0
        until rmmod varid; do
            tries=$((tries + 1))
            [ $tries -lt 10000 ] || exit
        done
        ! grep varid /proc/vmallocinfo"
    ))?;
    let soak = board.check(&format!("{programs}/soak.sh {CYCLES} 500"))?;
    println!("{TEST}: {}", soak.lines().last().unwrap_or_default());
    board.kernel_is_content()
}
