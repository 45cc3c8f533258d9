//! Does the kernel module do on the board what the BPF program does, and does it leave no trace?

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{MutexGuard, OnceLock};
use varid_tests::{
    App, Board, Making, board, made_by, made_once, methods_by_varid, oracle, testbed,
};

/// Cycles of the soak here; `make board-module-soak` has the 10,000.
const CYCLES: u32 = 30;

/// A board with the module's file and the programs that try it in [`Board::PROGRAMS`]. None: skipped aloud.
fn board_with_module() -> Result<Option<MutexGuard<'static, Board>>> {
    const TEST: &str = "board_module";
    static PUSHED: OnceLock<Making<()>> = OnceLock::new();
    let Some(board) = board(TEST)? else {
        return Ok(None);
    };
    if made_once(&PUSHED, TEST, || push_module(&board))?.is_none() {
        return Ok(None);
    }
    // A test that failed may have left it loaded.
    board.check("rmmod varid 2>/dev/null; dmesg -c >/dev/null")?;
    Ok(Some(board))
}

/// Builds all that and pushes it; or says what is lacking here.
fn push_module(board: &Board) -> Result<std::result::Result<(), String>> {
    let target = testbed()?.release.parent().context("no target folder")?;
    let release = board.check("uname -r")?;
    let folder = target.join("board/module");
    let mut build = Command::new(source("module.sh"));
    build.args(["arm64", release.trim()]).arg(&folder);
    if let Err(lacking) = made_by(build.env("CARGO_TARGET_DIR", target))? {
        return Ok(Err(lacking));
    }
    let mut files = vec![
        folder.join("varid.ko"),
        source("module/soak.sh"),
        testbed()?.shadowvm.join("shadow.dex"),
    ];
    for program in ["fuzz", "session", "tunnel"] {
        files.push(compiled(program, &folder)?);
    }
    board.push(files, Board::PROGRAMS).map(Ok)
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("board")
        .join(name)
}

/// A program of `board/module`, for the board.
fn compiled(name: &str, folder: &Path) -> Result<PathBuf> {
    let program = folder.join(name);
    let mut compile = Command::new("aarch64-linux-gnu-gcc");
    compile.args(["-O1", "-Wall", "-Wextra", "-Werror", "-static"]);
    for include in ["../kmod-shim/include", "../dvm-patch/include"] {
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join(include);
        compile.arg("-I").arg(include);
    }
    compile
        .arg("-o")
        .arg(&program)
        .arg(source(&format!("module/{name}.c")));
    ensure!(compile.status()?.success(), "{compile:?}");
    Ok(program)
}

/// The kernel has nothing to say of what was done.
fn kernel_is_content(board: &Board) -> Result<()> {
    let complaints = board.check(
        "dmesg | grep -E 'BUG|WARNING|Oops|Call trace|Unable to handle|scheduling while' || true",
    )?;
    ensure!(complaints.is_empty(), "{complaints}");
    Ok(())
}

/// Both sample the same run: the inner session by the module, the outer one, whose command is the inner varid, by BPF.
#[test]
fn the_module_and_bpf_give_the_same_shares_of_the_same_run() -> Result<()> {
    let Some(board) = board_with_module()? else {
        return Ok(());
    };
    let (programs, session) = (Board::PROGRAMS, Board::SESSION);
    let app = App::new("math", "run", 2)?;
    let command = app.arguments_in(Path::new(programs), Path::new(programs));
    board.check(&format!(
        "cd {programs}; rm -rf {session}*; insmod varid.ko
        ./varid record --shim bpf -e cycles -F 997 -o {session}.bpf -- \
            ./varid record --shim module -e cycles -F 997 -o {session} -- {}; rmmod varid",
        command.join(" ")
    ))?;
    let here = tempfile::tempdir()?;
    let fetched = |from: String, name: &str| -> Result<_> {
        let to = here.path().join(name);
        board.pull(&from, &to)?;
        let methods = methods_by_varid(&to)?;
        let managed = methods
            .into_iter()
            .filter(|(name, _)| name.starts_with("org.example."));
        Ok(managed.collect::<BTreeMap<_, _>>())
    };
    let module = fetched(session.to_owned(), "module")?;
    let bpf = fetched(format!("{session}.bpf"), "bpf")?;
    let of = |methods: &BTreeMap<String, u64>| methods.values().sum::<u64>() as f64;
    let (n, m) = (of(&module), of(&bpf));
    println!("board_module: {n} samples of methods by the module, {m} by BPF");
    ensure!(n > 500.0 && m > 500.0, "{module:?}\n{bpf:?}");
    let names: BTreeSet<&String> = module.keys().chain(bpf.keys()).collect();
    let counts = names.into_iter().map(|name| {
        let of = |methods: &BTreeMap<String, u64>| methods.get(name).map_or(0.0, |n| *n as f64);
        (name, of(&module), of(&bpf))
    });
    // Of fewer samples the normal distribution says little.
    let compared: Vec<_> = counts.filter(|(_, a, b)| a + b >= 20.0).collect();
    // By chance one run in 15,000 has a method beyond: 2 exp(-x*x/2) is more than what lies beyond x standard deviations.
    let beyond = 1.0 / 15_000.0 / compared.len() as f64;
    let deviations = (-2.0 * (beyond / 2.0).ln()).sqrt();
    for (name, a, b) in compared {
        let p = (a + b) / (n + m);
        let bound = deviations * (p * (1.0 - p) * (1.0 / n + 1.0 / m)).sqrt();
        ensure!(
            (a / n - b / m).abs() <= bound,
            "{name}: {a} of {n} by the module, {b} of {m} by BPF"
        );
    }
    kernel_is_content(&board)
}

/// In the shadow interpreter every method is a native function: the symbol at the ip is the truth.
#[test]
fn every_sample_of_the_module_is_the_method_that_ran() -> Result<()> {
    let Some(board) = board_with_module()? else {
        return Ok(());
    };
    let programs = Board::PROGRAMS;
    let program = testbed()?
        .release
        .parent()
        .context("no target folder")?
        .join("board/arm64/shadowvm/shadowvm");
    // perf finds the session's symbols where they were written: the folder has the same name there and here.
    let folder = tempfile::tempdir()?;
    let here = folder.path().display().to_string();
    board.check(&format!(
        "cd {programs}; mkdir -p {here}; insmod varid.ko
        ./varid record --shim module --keep-raw -F 997 -o {here}/session -- \
            {programs}/shadowvm/shadowvm --dex shadow.dex --name org.example.shadow --rounds 1 --threads 1 &
        recorder=$!
        while [ ! -s {here}/maps ] && kill -0 $recorder; do
            for process in /proc/[0-9]*; do
                case $(readlink $process/exe) in
                */shadowvm) ! grep -q varid-tunnel $process/maps || cp $process/maps {here}/maps ;;
                esac
            done
        done
        wait $recorder; status=$?; rmmod varid; exit $status"
    ))?;
    for name in ["session", "maps"] {
        board.pull(&format!("{here}/{name}"), &folder.path().join(name))?;
    }
    board.check(&format!("rm -r {here}"))?;
    let maps = std::fs::read_to_string(folder.path().join("maps"))?;
    let there = format!("{programs}/shadowvm/shadowvm");
    let maps = maps.replace(&there, &program.display().to_string());
    std::fs::write(folder.path().join("maps"), maps)?;
    let (_, counted, complaints) = oracle(
        "shadow.py",
        [
            folder.path().join("session"),
            folder.path().join("maps"),
            program,
        ],
    )?;
    println!("board_module: {counted}");
    let count = |name: &str| counted[name].as_u64().unwrap_or(0);
    // Before the VM is known a chain that is cut may have lost the marker that says so.
    ensure!(count("wrong") <= 2, "{counted}\n{complaints}");
    ensure!(
        count("samples") > 1000 && count("method known") * 10 > count("samples") * 9,
        "too few samples have a known truth: {counted}"
    );
    kernel_is_content(&board)
}

#[test]
fn a_tunnel_is_read_and_not_inherited() -> Result<()> {
    let Some(board) = board_with_module()? else {
        return Ok(());
    };
    let said = board.check(&format!(
        "cd {}; insmod varid.ko && ./tunnel; status=$?; rmmod varid; exit $status",
        Board::PROGRAMS
    ))?;
    println!("board_module: {said}");
    kernel_is_content(&board)
}

#[test]
fn a_killed_daemon_leaves_nothing_and_many_lives_neither() -> Result<()> {
    let Some(board) = board_with_module()? else {
        return Ok(());
    };
    let programs = Board::PROGRAMS;
    // Killed once its session lives, which the manifest says.
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
    println!("board_module: {}", soak.lines().last().unwrap_or_default());
    kernel_is_content(&board)
}
