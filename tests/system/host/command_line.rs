//! Tests the commands that users of perf are likely to type first.

use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use varid_tests::{Running, manifest, printed, skip_without_root, testbed};

/// Runs varid with these arguments in a folder of its own. `record` also gets the session's folder.
fn varid(folder: &Path, arguments: &[&str]) -> Result<Output> {
    let mut varid = testbed()?.varid();
    Ok(varid.args(arguments).current_dir(folder).output()?)
}

fn succeeded(output: Output) -> Result<(String, String)> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {said}", output.status);
    Ok((String::from_utf8(output.stdout)?, said))
}

/// Starts a process that computes until it is killed.
fn spinning() -> Result<Running> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do :; done"]);
    Ok(Running(shell.stdin(Stdio::null()).spawn()?))
}

#[test]
fn a_command_needs_no_dashes_before_it_and_keeps_its_own_options() -> Result<()> {
    if skip_without_root("command line") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let record = [
        "record",
        "-g",
        "--call-graph",
        "dwarf",
        "-F",
        "997",
        "-o",
        "s",
        "sh",
        "-c",
        "echo \"$1\" $0",
        "-o",
        "-a",
    ];
    let (printed, said) = succeeded(varid(folder.path(), &record)?)?;
    ensure!(printed == "-a -o\n", "{printed}");
    ensure!(said.contains("(sh -c"), "the command is not named: {said}");
    let manifest = manifest(&folder.path().join("s"))?;
    ensure!(
        manifest["target"]["kind"] == "command",
        "{}",
        manifest["target"]
    );
    Ok(())
}

#[test]
fn everything_or_named_processes_are_recorded_until_a_command_ends() -> Result<()> {
    if skip_without_root("command line") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (one, two, stranger) = (spinning()?, spinning()?, spinning()?);
    let pids = format!("{},{}", one.pid(), two.pid());
    // About 50 ms of work on an idle processor.
    let work = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; exit 7";
    for (target, kind) in [(vec!["-a"], "all"), (vec!["-p", &pids], "pid")] {
        let mut record = vec!["record", "-F", "997", "-o", kind];
        record.extend(&target);
        record.extend(["sh", "-c", work]);
        let output = varid(folder.path(), &record)?;
        ensure!(output.status.code() == Some(7), "{output:?}");
        let session = folder.path().join(kind);
        let about = manifest(&session)?;
        ensure!(
            about["state"] == "complete" && about["target"]["kind"] == kind,
            "{about}"
        );
        let mut perf = Command::new("perf");
        perf.args(["script", "-F", "pid", "-G", "-i"]);
        let seen = printed(perf.arg(session.join("perf.data")))?;
        let has = |process: &Running| {
            seen.lines()
                .any(|line| line.trim() == process.pid().to_string())
        };
        ensure!(has(&one) && has(&two), "{kind}: {seen}");
        ensure!(has(&stranger) == (kind == "all"), "{kind}: {seen}");
    }
    Ok(())
}

#[test]
fn a_session_is_reported_by_its_folder_its_name_or_its_perf_data() -> Result<()> {
    if skip_without_root("command line") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let record = [
        "record",
        "-F",
        "997",
        "-o",
        "s",
        "sh",
        "-c",
        "i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done",
    ];
    succeeded(varid(folder.path(), &record)?)?;
    let (wanted, _) = succeeded(varid(folder.path(), &["report", "-i", "s"])?)?;
    ensure!(wanted.contains("sh"), "{wanted}");
    for arguments in [
        &["report", "s"][..],
        &["report", "-i", "s/perf.data"],
        &["report", "./s/perf.data"],
    ] {
        let (found, _) = succeeded(varid(folder.path(), arguments)?)?;
        ensure!(found == wanted, "{arguments:?}: {found}");
    }
    let (_, said) = succeeded(varid(folder.path(), &["export", "s", "-o", "x.svg"])?)?;
    ensure!(said.contains("varid: x.svg: "), "{said}");
    let nothing = ["report", "s", "--focus", "no-such-function"];
    let (found, _) = succeeded(varid(folder.path(), &nothing)?)?;
    ensure!(
        found.starts_with("no sample matches") && found.lines().count() == 1,
        "{found}"
    );
    fs::create_dir(folder.path().join("s/below"))?;
    let (found, _) = succeeded(varid(
        &folder.path().join("s/below"),
        &["report", "../perf.data"],
    )?)?;
    ensure!(found == wanted, "{found}");
    Ok(())
}

#[test]
fn what_cannot_be_meant_says_what_to_type() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("p.data"), "PERFILE2 of perf")?;
    fs::write(folder.path().join("x.dex"), "dex")?;
    for (arguments, code, says) in [
        (
            &["record", "--app", "org.example", "true"][..],
            2,
            "--all or --pid",
        ),
        (&["record"], 2, "give a command"),
        (
            &["record", "-e", "sched:no_such_tracepoint", "true"],
            125,
            "/sys/kernel/tracing/events/SYSTEM",
        ),
        (&["start", "-a", "org.example"], 2, "'org.example'"),
        (
            &["record", "-e", "sched:nosuch", "true"],
            125,
            "no tracepoint 'nosuch'",
        ),
        (
            &["record", "-e", "cylces", "true"],
            125,
            "did you mean 'cycles'?",
        ),
        (&["report", "p.data"], 1, "'varid import p.data'"),
        (&["report", "x.dex"], 1, "x.dex is a file, not a session"),
        (&["diff", "one"], 2, "Usage: varid diff"),
        (&["script"], 2, "'perf script -i SESSION/perf.data'"),
        (&["export", "-o", "x.json"], 2, "which format?"),
    ] {
        let output = varid(folder.path(), arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(code),
            "{arguments:?}: {output:?}"
        );
        ensure!(said.contains(says), "{arguments:?}: {said}");
    }
    Ok(())
}

/// Returns the output of `varid report` on a terminal of 80 columns and 24 lines.
fn on_a_terminal(folder: &Path, pager: &str, options: &str) -> Result<String> {
    let mut script = Command::new("script");
    let varid = testbed()?.varid().get_program().to_owned();
    let command = format!(
        "stty cols 80 rows 24; '{}' report s {options}",
        varid.display()
    );
    let output = script
        .args(["-qec", &command, "/dev/null"])
        .env("VARID_PAGER", pager)
        .env("NO_COLOR", "1")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()?;
    Ok(succeeded(output)?.0.replace("\r\n", "\n"))
}

#[test]
fn a_report_fits_its_terminal_and_is_whole_in_a_pipe() -> Result<()> {
    if skip_without_root("command line") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let long = "a_name_that_is_wider_than_the_terminal_".repeat(3);
    let program = folder.path().join(&long);
    fs::copy("/bin/dash", &program)?;
    let work = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
    let program = program.display().to_string();
    let record = ["record", "-F", "997", "-o", "s", &program, "-c", work];
    succeeded(varid(folder.path(), &record)?)?;
    let tables = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .skip_while(|line| !line.starts_with("samples  %"));
        let tables = lines.take_while(|line| !line.starts_with("samples   "));
        tables.map(str::to_owned).collect()
    };
    let too_wide = |text: &str| tables(text).iter().any(|line| line.chars().count() > 80);

    let (piped, _) = succeeded(varid(folder.path(), &["report", "s"])?)?;
    ensure!(
        piped.contains(&long) && !piped.contains("--all-rows"),
        "{piped}"
    );
    let fitted = on_a_terminal(folder.path(), "cat", "--by image")?;
    ensure!(
        tables(&fitted).len() > 4 && !too_wide(&fitted) && fitted.contains("a_name_tha"),
        "{fitted}"
    );
    let wide = on_a_terminal(folder.path(), "cat", "--wide --all-rows")?;
    ensure!(tables(&wide) == tables(&piped) && too_wide(&wide), "{wide}");
    // The named pager gets the whole output. A missing pager loses nothing.
    let paged = on_a_terminal(folder.path(), "sed 's/^/paged: /'", "--by image")?;
    ensure!(
        paged.lines().all(|line| line.starts_with("paged: ")) && paged.lines().count() > 8,
        "{paged}"
    );
    let unpaged = on_a_terminal(folder.path(), "no-such-pager 2>/dev/null", "--by image")?;
    ensure!(unpaged == fitted, "{unpaged}");
    Ok(())
}
