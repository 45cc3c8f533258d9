//! Tests the output of likely first commands on a terminal of 80 columns and 24 lines.

use anyhow::{Context, Result, ensure};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use varid_tests::{skip_without_root, testbed};

/// Computes for some tens of milliseconds, and exits with the given status.
const WORK: &str = "#!/bin/sh\ni=0\nwhile [ $i -lt 100000 ]; do i=$((i + 1)); done\nexit ${1:-0}\n";

/// The input, each line after a `$`, and the output. Numbers are N, and the folder is DIR.
const SHOWN: &str = "\
$ varid record -e cpu-clock -o first ./work
 INFO profiling process N (./work)
 INFO process N has ended
varid: N samples in first
varid: 'varid report' shows it
$ varid -q record -e cpu-clock -a -o second ./work
$ varid record -e cpu-clock -o third ./work 3
 INFO profiling process N (./work N)
 INFO process N has ended
varid: N samples in third
varid: 'varid report' shows it
 WARN the command failed: exit status: N
$ varid sessions
SESSION STATE STARTED SECONDS SAMPLES SIZE TARGET
DIR/first complete N-N-NTN:N:NZ N.N N N.N KB ./work
DIR/second complete N-N-NTN:N:NZ N.N N N.N KB all
DIR/third complete N-N-NTN:N:NZ N.N N N.N KB ./work N
$ varid status
no session runs, no daemon either
$ varid stop
varid: no session runs
$ varid report nowhere
varid: there is no session 'nowhere', here or in DIR/home/sessions: 'varid sessions' lists them
$ varid record
error: nothing to profile: give a command, or --app, --service, --pid or --all (or a --config file that names apps, services or all)

Usage: varid record [OPTIONS] [COMMAND]...

For more information, try '--help'.
$ varid record --app org.example.x true
error: an app or service is recorded whenever it runs: with a command name no other process, or --all or --pid

Usage: varid record [OPTIONS] [COMMAND]...

For more information, try '--help'.
$ varid record -e sched:no_such_tracepoint true
varid: the kernel has no tracepoint 'no_such_tracepoint': 'ls /sys/kernel/tracing/events/SYSTEM' lists those of a system; those of single system calls are raw_syscalls:sys_enter and sys_exit: `bpf_raw_tracepoint_open` failed: No such file or directory (os error N)
$ varid record -e cpu-clock -p 4194304
varid: no process has the id N
$ varid record -e cpu-clock sleepp 1
varid: cannot run 'sleepp': not found in PATH
$ varid config check good.toml
good.toml: nothing is wrong
$ varid config check bad.toml
bad.toml:N:N: a list, [\"…\", \"…\"] is wanted here, not a whole number
bad.toml:N:N: a configuration has no key 'sampling': known are all, apps, services, methods, events, frequency, period, stack, mode, tactic, limits, app, service
$ varid config check nowhere.toml
varid: cannot read the configuration nowhere.toml: No such file or directory (os error N)
$ varid config show --app org.example.math -e cpu-clock -F 997
apps = [\"org.example.math\"]
events = [\"cpu-clock\"]
frequency = N
stack = \"vertical\"
mode = \"sample\"
";

/// The subjects of `varid doctor`, whatever their state is on this machine.
const DOCTOR: [&str; 17] = [
    "kernel",
    "PMU",
    "cpu-clock",
    "BPF shim",
    "kernel module",
    "BTF",
    "user",
    "sandbox",
    "perf_event_paranoid",
    "max_sample_rate",
    "memory for rings",
    "open files",
    "kernel symbols",
    "VM builds known without an agent",
    "VMs found here",
    "What varid will use",
    "What would make it better",
];

/// Events that `varid events` lists on every machine in this order, among others.
const EVENTS: [&str; 6] = [
    "cycles",
    "instructions",
    "cpu-clock",
    "page-faults",
    "L1-dcache-loads",
    "dTLB-load-misses",
];

/// Returns the terminal output of varid with these arguments.
fn shown(folder: &Path, words: &str) -> Result<String> {
    let varid = testbed()?.release.join("varid");
    let typed = format!("stty cols 80 rows 24; {} {words}", varid.display());
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--command", &typed, "/dev/null"]);
    terminal
        .current_dir(folder)
        .env("VARID_HOME", folder.join("home"))
        .env_remove("NO_COLOR");
    let output = terminal.stdin(Stdio::null()).output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Removes colours, and replaces numbers by N, the folder by DIR, and column separators by one space.
fn plain(text: &str, folder: &Path) -> String {
    let folder = folder.display().to_string();
    let text = text.replace('\r', "").replace(&folder, "DIR");
    // The size depends on other code.
    let text = text.replace(" MB ", " KB ");
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => while rest.next().is_some_and(|c| c != 'm') {},
            '0'..='9' => {
                while rest.next_if(char::is_ascii_digit).is_some() {}
                plain.push('N');
            }
            ' ' if plain.ends_with(' ') => {}
            c => plain.push(c),
        }
    }
    plain
}

#[test]
fn what_is_typed_first_shows_what_was_done_or_what_to_type() -> Result<()> {
    if skip_without_root("terminal") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let folder = fs::canonicalize(folder.path())?;
    let work = folder.join("work");
    fs::write(&work, WORK)?;
    fs::set_permissions(&work, Permissions::from_mode(0o755))?;
    fs::write(folder.join("good.toml"), "all = true\n")?;
    fs::write(folder.join("bad.toml"), "apps = 3\n[sampling]\n")?;
    for part in SHOWN.split("$ varid ").skip(1) {
        let (words, expected) = part.split_once('\n').context("no line")?;
        let shown = plain(&shown(&folder, words)?, &folder);
        ensure!(
            shown == expected,
            "$ varid {words}\n{shown}\nis not\n{expected}"
        );
    }
    Ok(())
}

#[test]
fn what_a_machine_offers_is_said_line_by_line() -> Result<()> {
    if skip_without_root("terminal") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let doctor = shown(folder.path(), "doctor")?.replace('\r', "");
    let (checks, sections) = doctor.split_once("\n\n").context("no sections")?;
    let checks = checks.lines().skip(1).map(|line| {
        let (state, what) = line.trim_start().split_once(' ').unwrap_or_default();
        (state, what.trim_start().split("  ").next().unwrap_or(""))
    });
    let checks: Vec<_> = checks.collect();
    ensure!(
        checks
            .iter()
            .all(|(state, _)| ["ok", "limits", "no"].contains(state)),
        "{doctor}"
    );
    let headings = sections
        .lines()
        .filter(|line| line.starts_with(|c: char| !c.is_whitespace()));
    let all: Vec<_> = checks
        .iter()
        .map(|(_, what)| *what)
        .chain(headings)
        .collect();
    ensure!(all == DOCTOR, "{doctor}");

    let events = shown(folder.path(), "events")?.replace('\r', "");
    let (table, notes) = events.split_once("\n\n").context("no notes")?;
    let mut rows = table.lines().map(|line| line.split_whitespace());
    let heading = rows.next().context("no heading")?;
    ensure!(heading.eq(["EVENT", "HERE", "COUNTED"]), "{events}");
    let rows: Vec<Vec<_>> = rows.map(Iterator::collect).collect();
    let is_row = |row: &Vec<&str>| match row.get(1..3) {
        Some(["yes", count]) => count.parse::<u64>().is_ok(),
        Some(["no", "-"]) => row.len() > 3,
        _ => false,
    };
    ensure!(rows.iter().all(is_row), "{events}");
    let mut names = rows.iter().filter_map(|row| row.first());
    ensure!(
        EVENTS.iter().all(|event| names.any(|name| name == event)),
        "{events}"
    );
    ensure!(notes.contains("Sampled by default: "), "{events}");
    Ok(())
}
