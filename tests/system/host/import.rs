//! Tests that `varid import` makes sessions that match perf's output for its own recordings.
//!
//! perf is the oracle. It reads both the recording and the session.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tests::{PERF_REPORT, printed, report_by_symbol, skip_without_root, testbed};

/// Compiles a program with a chain of calls, with these options.
fn program(folder: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/fixtures/simpleperf/work.c");
    let program = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler
        .args(["-g", "-fno-optimize-sibling-calls"])
        .args(options);
    printed(compiler.arg("-o").arg(&program).arg(source))?;
    Ok(program)
}

/// Records a program by perf, with these options.
fn perf_record(program: &Path, options: &[&str]) -> Result<PathBuf> {
    let file = program.with_extension("data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "1999"]);
    printed(
        perf.args(options)
            .arg("-o")
            .arg(&file)
            .arg(program)
            .arg("2000"),
    )?;
    Ok(file)
}

/// Runs `varid import` with these options.
fn import(source: &Path, session: &Path, options: &[&str]) -> Result<PathBuf> {
    let mut varid = testbed()?.varid();
    varid.arg("import").arg(source).arg("-o").arg(session);
    printed(varid.args(options))?;
    Ok(session.to_owned())
}

/// Returns a symbol's name without its version, with one name for all unknown symbols, and one for all reserved names: the C library has
/// several for one function, and perf's choice among them is its own.
fn plain(symbol: &str) -> String {
    let (name, _) = symbol.split_once("@@").unwrap_or((symbol, ""));
    if name.starts_with("0x") || name.contains("+0x") {
        return "unnamed".to_owned();
    }
    match name.starts_with('_') {
        true => "reserved".to_owned(),
        false => name.to_owned(),
    }
}

/// Returns the leaf samples of each symbol, by perf.
fn symbols_by_perf(file: &Path) -> Result<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    let mut perf = Command::new("perf");
    for line in printed(perf.args(PERF_REPORT).arg(file))?.lines() {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, samples, symbol, ..] = fields[..] else {
            continue;
        };
        // [.] and [k] are the mode of the sample.
        let Some(symbol) = symbol.strip_prefix("[.] ").or(symbol.strip_prefix("[k] ")) else {
            continue;
        };
        *found.entry(plain(symbol.trim())).or_default() += samples.parse::<u64>()?;
    }
    Ok(found)
}

/// Returns the leaf samples of each symbol, by `varid report`.
fn symbols_by_varid(session: &Path) -> Result<BTreeMap<String, u64>> {
    let report = report_by_symbol(session)?;
    let mut found = BTreeMap::new();
    for row in report["rows"].as_array().context("no rows")? {
        let (symbol, samples) = (row["symbol"].as_str(), row["self"].as_u64());
        let (symbol, samples) = symbol.zip(samples).context("no symbol with samples")?;
        if samples > 0 {
            *found.entry(plain(symbol)).or_default() += samples;
        }
    }
    Ok(found)
}

/// Returns every sample with its event, period and addresses, as printed by `perf script`.
fn samples_by_perf(file: &Path) -> Result<Vec<String>> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--no-inline", "-i"]).arg(file);
    let text = printed(perf.args(["-F", "comm,pid,tid,time,event,period,ip"]))?;
    let line = |line: &str| match line.strip_prefix('\t') {
        // For a recording from a pipe, perf prints the symbols as well.
        Some(frame) => frame.split_whitespace().next().unwrap_or("").to_owned(),
        None => line.to_owned(),
    };
    Ok(text.lines().map(line).collect())
}

/// Returns every sample's thread, time, event and period, as printed by `perf script`.
fn heads_by_perf(file: &Path) -> Result<String> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-G", "-F", "comm,tid,time,event,period", "-i"]);
    printed(perf.arg(file))
}

#[test]
fn symbols_and_callchains_of_frame_pointers_are_perf_s() -> Result<()> {
    if skip_without_root("import") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = program(folder.path(), "work", &["-O1", "-fno-omit-frame-pointer"])?;
    for (name, options) in [("plain", &["-g"][..]), ("compressed", &["-g", "-z"])] {
        let file = perf_record(&program, options)?;
        let session = import(&file, &folder.path().join(name), &[])?;
        let (perf, varid) = (symbols_by_perf(&file)?, symbols_by_varid(&session)?);
        ensure!(
            perf == varid,
            "{name}: perf has\n{perf:?}\nvarid has\n{varid:?}"
        );
        let inner = perf.get("inner").copied().unwrap_or(0);
        ensure!(inner > 50, "{inner} samples in the hottest function");
        let (ours, theirs) = (
            samples_by_perf(&session.join("perf.data"))?,
            samples_by_perf(&file)?,
        );
        ensure!(
            ours == theirs,
            "{name}: perf script prints of the recording\n{theirs:#?}\nof the session\n{ours:#?}"
        );
        println!(
            "import, {name}: {} symbols, {} lines of samples and addresses",
            perf.len(),
            ours.len()
        );
    }
    Ok(())
}

/// Forms of perf's recordings: one event or several, with different fields, order or container.
const FORMS: [(&str, &[&str]); 6] = [
    (
        "several events",
        &["-e", "page-faults", "-e", "sched:sched_switch"],
    ),
    (
        "counters read with each sample",
        &["-e", "task-clock", "-s"],
    ),
    ("addresses and weights", &["-d", "--phys-data", "-W"]),
    ("cgroups", &["--all-cgroups"]),
    ("a folder", &["--threads"]),
    ("a pipe", &["-o", "-"]),
];

#[test]
fn samples_periods_threads_and_events_are_perf_s_in_each_form() -> Result<()> {
    if skip_without_root("import") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = program(folder.path(), "work", &["-O1", "-fno-omit-frame-pointer"])?;
    for (at, (name, options)) in FORMS.iter().enumerate() {
        let file = folder.path().join(format!("{at}.data"));
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-g", "-F", "1999", "-e", "cpu-clock", "-o"])
            .arg(&file)
            .args(*options)
            .arg(&program)
            .arg("500");
        if options.contains(&"-") {
            let status = perf.stdout(std::fs::File::create(&file)?).status()?;
            ensure!(status.success(), "{perf:?}: {status}");
        } else {
            printed(&mut perf)?;
        }
        let session = import(&file, &folder.path().join(at.to_string()), &[])?;
        let (ours, theirs) = (
            samples_by_perf(&session.join("perf.data"))?,
            samples_by_perf(&file)?,
        );
        ensure!(
            theirs.len() > 100 && ours == theirs,
            "{name}: perf script prints of the recording\n{theirs:#?}\nof the session\n{ours:#?}"
        );

        let text = folder.path().join(format!("{at}.script"));
        let mut perf = Command::new("perf");
        perf.args(["script", "--header", "-F", "+period", "-i"]);
        std::fs::write(&text, printed(perf.arg(&file))?)?;
        let session = import(&text, &folder.path().join(format!("{at}.text")), &[])?;
        let (ours, theirs) = (
            heads_by_perf(&session.join("perf.data"))?,
            heads_by_perf(&file)?,
        );
        ensure!(
            ours == theirs,
            "{name}, its text: perf script prints of the recording\n{theirs}\nof the session\n{ours}"
        );
        println!("import, {name}: {} samples", theirs.lines().count());
    }
    Ok(())
}

#[test]
fn stacks_that_are_unwound_from_copies_are_perf_s() -> Result<()> {
    if skip_without_root("import") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = program(folder.path(), "work", &["-O2"])?;
    let file = perf_record(&program, &["--call-graph", "dwarf"])?;
    let session = import(&file, &folder.path().join("session"), &[])?;
    let (perf, varid) = (symbols_by_perf(&file)?, symbols_by_varid(&session)?);
    ensure!(perf == varid, "perf has\n{perf:?}\nvarid has\n{varid:?}");
    // Stacks of the program's own functions. perf's unwinder stops elsewhere at the program's start and in the kernel's
    // entries.
    let of_program = |file: &Path| -> Result<Vec<String>> {
        let mut perf = Command::new("perf");
        perf.args(["script", "--no-inline", "-F", "ip,sym", "-i"]);
        let text = printed(perf.arg(file))?;
        let stacks = text.split("\n\n").map(|stack| {
            let names = stack
                .lines()
                .filter_map(|line| line.split_whitespace().nth(1));
            let names = names.take_while(|name| !name.starts_with("__libc_start"));
            names.collect::<Vec<_>>().join(";")
        });
        Ok(stacks.filter(|stack| !stack.is_empty()).collect())
    };
    let (ours, theirs) = (of_program(&session.join("perf.data"))?, of_program(&file)?);
    ensure!(
        ours.len() == theirs.len(),
        "{} and {} samples",
        ours.len(),
        theirs.len()
    );
    let different = ours
        .iter()
        .zip(&theirs)
        .filter(|(ours, theirs)| ours != theirs);
    let different: Vec<_> = different.collect();
    println!(
        "import: {} stacks unwound, {} other than perf's: {different:?}",
        ours.len(),
        different.len()
    );
    // A sample in the first instructions of a prologue may differ.
    ensure!(different.len() * 100 <= ours.len(), "{different:?}");
    let deep = ours
        .iter()
        .filter(|stack| *stack == "inner;middle;outer;main")
        .count();
    ensure!(deep > 50, "{deep} whole stacks");
    Ok(())
}

#[test]
fn a_perf_script_has_perf_s_symbols() -> Result<()> {
    if skip_without_root("import") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = program(folder.path(), "work", &["-O1", "-fno-omit-frame-pointer"])?;
    let file = perf_record(&program, &["-g"])?;
    let perf = symbols_by_perf(&file)?;
    let text = folder.path().join("script");
    std::fs::write(
        &text,
        printed(Command::new("perf").args(["script", "-i"]).arg(&file))?,
    )?;
    let session = import(&text, &folder.path().join("session"), &[])?;
    let varid = symbols_by_varid(&session)?;
    ensure!(
        perf == varid,
        "perf has\n{perf:?}\nvarid has of the text\n{varid:?}"
    );
    // perf finds the names in the session as well. Those of the kernel are functions of a file.
    let of_session = symbols_by_perf(&session.join("perf.data"))?;
    ensure!(
        perf == of_session,
        "perf has\n{perf:?}\nof the session\n{of_session:?}"
    );
    Ok(())
}
