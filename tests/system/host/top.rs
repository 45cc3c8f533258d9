//! Tests that `varid top` shows the recording in a real terminal, and restores the terminal.
//!
//! The terminal is a tmux session, from which the screen is read, and which gets the keys.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use varid_tests::{App, Home, is_alive, printed, report_by_symbol, skip_without_root, testbed};

/// A terminal, which ends with the test.
struct Tmux(std::path::PathBuf);

impl Tmux {
    /// Starts a shell script in a terminal of 80 columns and 24 lines.
    fn start(home: &Home, script: &str) -> Result<Self> {
        let tmux = Self(home.path("tmux"));
        let script = home.write("script", script)?;
        let line = format!("exec sh {}", script.display());
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            &line,
        ])
        .context("this test needs tmux: install the package tmux")?;
        Ok(tmux)
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        printed(Command::new("tmux").arg("-S").arg(&self.0).args(arguments))
    }

    /// Presses keys, by tmux's names.
    fn press(&self, keys: &[&str]) -> Result<()> {
        self.run(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Returns the screen.
    fn screen(&self) -> Result<String> {
        self.run(&["capture-pane", "-p"])
    }

    /// Returns a format of tmux for the terminal.
    fn says(&self, format: &str) -> Result<String> {
        let said = self.run(&["display-message", "-p", format])?;
        Ok(said.trim().to_owned())
    }

    /// Waits for a condition of the screen. Fails if the script ends before.
    fn wait(&self, until: impl Fn(&str) -> bool) -> Result<String> {
        let mut last = String::new();
        loop {
            let screen = self.screen();
            let screen =
                screen.with_context(|| format!("it has ended; before it showed\n{last}"))?;
            if until(&screen) {
                return Ok(screen);
            }
            ensure!(!screen.contains("\nover"), "varid has ended:\n{screen}");
            last = screen;
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.run(&["kill-server"]);
    }
}

/// Returns the number of samples in the first line.
fn samples(screen: &str) -> Option<u64> {
    let (before, _) = screen.lines().next()?.split_once(" samples, ")?;
    before.split_whitespace().last()?.parse().ok()
}

/// Returns name, self and total percent of each shown method.
fn methods(screen: &str) -> Vec<(String, f64, f64)> {
    let rows = screen.lines().skip(4).filter_map(|line| {
        let mut words = line.trim_start_matches('>').split_whitespace();
        let mut percent = || words.next()?.strip_suffix('%')?.parse().ok();
        let (own, total) = (percent()?, percent()?);
        let name = words.skip(1).collect::<Vec<_>>().join(" ");
        Some((name, own, total))
    });
    rows.collect()
}

/// Returns a script that runs varid, then prints its exit status and whether the terminal's settings are unchanged.
fn script(home: &Home, arguments: &[String]) -> Result<String> {
    let quoted = arguments.iter().map(|argument| format!(" '{argument}'"));
    Ok(format!(
        "export VARID_HOME='{}'\nstty -a | tail -n +2 > {before}\n'{}' {}\necho \"status $?\"\nstty -a | tail -n +2 > {after}\ncmp {before} {after} && echo as before\necho over\ncat\n",
        home.path("home").display(),
        testbed()?.release.join("varid").display(),
        quoted.collect::<String>(),
        before = home.path("before").display(),
        after = home.path("after").display(),
    ))
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Starts `varid top` with a command to record.
fn top_of(home: &Home, command: &[String]) -> Result<Tmux> {
    let top = strings(&["top", "-d", "200ms", "-e", "cpu-clock", "-o"]);
    let session = vec![home.path("session").display().to_string(), "--".to_owned()];
    Tmux::start(
        home,
        &script(home, &[top, session, command.to_vec()].concat())?,
    )
}

fn is_restored(screen: &str) -> bool {
    screen.contains("status 0") && screen.contains("as before")
}

#[test]
fn top_shows_the_methods_and_shares_of_the_report() -> Result<()> {
    if skip_without_root("top") {
        return Ok(());
    }
    let home = Home::new()?;
    let app = App::new("math", "run", 60)?;
    let tmux = top_of(&home, &app.arguments())?;
    tmux.wait(|screen| screen.contains(", ended"))?;
    tmux.press(&["t"])?;
    let screen = tmux.wait(|screen| screen.contains("since the start"))?;
    let report = report_by_symbol(&home.path("session"))?;
    ensure!(
        report["samples"].as_u64() == samples(&screen) && samples(&screen) > Some(500),
        "{screen}"
    );
    let shown = methods(&screen);
    ensure!(
        shown.len() == 19 && shown[0].0.starts_with("org.example.math."),
        "{screen}"
    );
    // Names that exceed the column are shortened, so rows are compared by their order.
    let rows = report["rows"].as_array().context("no rows")?;
    let all = report["period_sum"].as_f64().context("no sum")?;
    let percent =
        |row: &Value, key: &str| row[key].as_f64().map_or(-1.0, |part| 100.0 * part / all);
    for ((name, own, total), row) in shown.iter().zip(rows) {
        let expected = ["self_period", "total_period"].map(|key| percent(row, key));
        let differs = |one: f64, other: f64| (one - other).abs() > 0.006;
        ensure!(
            !differs(*own, expected[0]) && !differs(*total, expected[1]),
            "{name}: {own} {total}, reported {row}\n{screen}"
        );
    }
    ensure!(
        rows[0]["symbol"] == shown[0].0.as_str(),
        "{}\n{screen}",
        rows[0]
    );
    // Its lines are also those of the report.
    tmux.press(&["Enter"])?;
    let lines = tmux.wait(|screen| screen.contains(" line "))?;
    ensure!(
        lines.contains(" from ") && lines.contains(".java:"),
        "{lines}"
    );
    tmux.press(&["q"])?;
    tmux.wait(is_restored)?;
    ensure!(tmux.says("#{alternate_on} #{cursor_flag}")? == "0 1");
    Ok(())
}

#[test]
fn what_is_frozen_stays_while_the_recording_goes_on() -> Result<()> {
    if skip_without_root("top") {
        return Ok(());
    }
    let home = Home::new()?;
    // It outlasts the test.
    let tmux = top_of(&home, &App::new("math", "run", 100_000)?.arguments())?;
    tmux.wait(|screen| samples(screen) > Some(200) && !methods(screen).is_empty())?;
    tmux.press(&["Space"])?;
    let frozen = tmux.wait(|screen| screen.contains("FROZEN"))?;
    let data = home.path("session/perf.data");
    let size = || data.metadata().map(|file| file.len());
    let before = size()?;
    while size()? < before + 200_000 {}
    ensure!(tmux.screen()? == frozen);
    tmux.press(&["Space"])?;
    tmux.wait(|screen| samples(screen) > samples(&frozen))?;
    // A smaller terminal shows fewer rows, and supports the same keys.
    tmux.run(&["resize-window", "-x", "60", "-y", "10"])?;
    tmux.wait(|screen| {
        screen
            .lines()
            .nth(9)
            .is_some_and(|line| line.starts_with("q quit"))
    })?;
    let pid = top_in(&tmux)?;
    let recorder = child_of(&pid)?;
    printed(Command::new("kill").args(["-TERM", &pid]))?;
    tmux.wait(is_restored)?;
    ensure!(tmux.says("#{alternate_on} #{cursor_flag}")? == "0 1");
    ensure!(!is_alive(&recorder), "it records on");
    ensure!(varid_tests::manifest(&home.path("session"))?["state"] == "complete");
    Ok(())
}

#[test]
fn every_session_that_runs_is_seen_until_the_terminal_is_closed() -> Result<()> {
    if skip_without_root("top") {
        return Ok(());
    }
    let home = Home::new()?;
    let spin = "while :; do :; done";
    // A thread's name that would rename the window and clear the screen.
    let evil = format!("printf '\\033]0;evil\\a\\033[2J' > /proc/$$/comm; {spin}");
    let record = |name: &str, script: &str| {
        let mut record = home.varid()?;
        record
            .args(["record", "-q", "-e", "cpu-clock", "-o"])
            .arg(home.path(name));
        let child = record.args(["sh", "-c", script]).spawn()?;
        anyhow::Ok(Recorder(child))
    };
    let recorders = [record("one", spin)?, record("two", &evil)?];
    // A session in a folder elsewhere is listed shortly after its start.
    while home.status()?["sessions"].as_array().map(Vec::len) != Some(2) {}
    let tmux = Tmux::start(&home, &script(&home, &strings(&["top", "-d", "200ms"]))?)?;
    tmux.wait(|screen| screen.contains("2 sessions") && samples(screen) > Some(100))?;
    tmux.press(&["Tab"])?;
    let threads = tmux.wait(|screen| screen.contains("THREAD") && screen.contains("evil"))?;
    ensure!(threads.contains("?]0;evil??[2J"), "{threads}");
    ensure!(!tmux.says("#{pane_title}")?.contains("evil"));
    tmux.press(&["c", "j", "Enter"])?;
    tmux.wait(|screen| screen.starts_with("varid top: sh -c") && samples(screen) > Some(0))?;
    let pid = top_in(&tmux)?;
    tmux.run(&["kill-server"])?;
    while is_alive(&pid) {}
    drop(recorders);
    Ok(())
}

#[test]
fn without_a_terminal_text_is_printed_or_what_to_type() -> Result<()> {
    if skip_without_root("top") {
        return Ok(());
    }
    let home = Home::new()?;
    let run = |arguments: &[&str]| home.varid()?.args(arguments).output().context("varid");
    let refused = run(&["top", "-a"])?;
    ensure!(
        !refused.status.success()
            && String::from_utf8_lossy(&refused.stderr).contains("varid top -n 5")
    );
    let none = run(&["top", "-n", "1"])?;
    ensure!(String::from_utf8_lossy(&none.stderr).contains("no session runs"));
    let missing = run(&["top", "-n", "1", "--", "no-such-program"])?;
    ensure!(String::from_utf8_lossy(&missing.stderr).contains("cannot run 'no-such-program'"));
    ensure!(!missing.status.success());
    let printed = run(&[
        "top",
        "-n",
        "2",
        "-d",
        "1500ms",
        "-e",
        "cpu-clock",
        "--",
        "sh",
        "-c",
        "echo said; while :; do :; done",
    ])?;
    let text = String::from_utf8(printed.stdout)?;
    ensure!(text.matches("varid top: sh -c").count() == 2, "{text}");
    ensure!(
        text.split("\n\n")
            .last()
            .is_some_and(|part| !methods(part).is_empty()),
        "{text}"
    );
    let errors = String::from_utf8_lossy(&printed.stderr);
    ensure!(
        errors.contains("said") && errors.contains("recorded in"),
        "{errors}"
    );
    Ok(())
}

#[test]
fn the_only_text_of_a_command_has_its_methods_however_early_it_is() -> Result<()> {
    if skip_without_root("top") {
        return Ok(());
    }
    let mut varid = Home::new()?.varid()?;
    varid.args(["top", "-n", "1", "-d", "100ms", "-e", "cpu-clock", "--"]);
    let printed = varid.args(["sh", "-c", "while :; do :; done"]).output()?;
    let text = String::from_utf8(printed.stdout)?;
    ensure!(text.matches("varid top: sh -c").count() == 1, "{text}");
    ensure!(!methods(&text).is_empty(), "{text}");
    Ok(())
}

/// Returns varid's process in a terminal.
fn top_in(tmux: &Tmux) -> Result<String> {
    child_of(&tmux.says("#{pane_pid}")?)
}

fn child_of(pid: &str) -> Result<String> {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(Path::new(&children))?;
    children
        .split_whitespace()
        .next()
        .map(str::to_owned)
        .context("no child")
}

/// A recorder, which ends its command when it is ended.
struct Recorder(std::process::Child);

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-TERM", &self.0.id().to_string()])
            .status();
        let _ = self.0.wait();
    }
}
