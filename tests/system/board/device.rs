//! Does `varid --adb` keep its promises on a real device? That is the ARM board, over a real adb; this machine is the host.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};
use varid_tests::{App, Board, board, has_all_of_math, testbed};

/// varid's folder on a device whose shell is root.
const HOME: &str = "/data/local/tmp/varid";

/// How long a test waits for what never takes so long: it fails then.
const PATIENCE: Duration = Duration::from_secs(600);

/// A host with the board attached, and no session on either.
struct Host {
    board: MutexGuard<'static, Board>,
    home: tempfile::TempDir,
    /// varid's folder on the board, if it is not the usual one.
    there: Option<String>,
}

impl Host {
    /// None: skipped aloud.
    fn new() -> Result<Option<Self>> {
        let Some(board) = board("device")? else {
            return Ok(None);
        };
        board.check(&format!("rm -rf {HOME}"))?;
        let home = tempfile::tempdir()?;
        Ok(Some(Self {
            board,
            home,
            there: None,
        }))
    }

    /// varid here, as its user runs it.
    fn varid(&self, words: &[&str]) -> Result<Command> {
        let mut varid = testbed()?.varid();
        let (name, server) = self.board.environment();
        varid
            .args(words)
            .env(name, server)
            .env("VARID_HOME", self.home.path())
            .envs(self.there.iter().map(|home| ("VARID_DEVICE_HOME", home)))
            .stdin(Stdio::null());
        Ok(varid)
    }

    /// `varid --adb=SERIAL`.
    fn adb(&self, words: &[&str]) -> Result<Command> {
        let serial = format!("--adb={}", self.board.serial());
        let mut all = vec![serial.as_str()];
        all.extend(words);
        self.varid(&all)
    }

    /// What it prints, and what it says.
    fn ok(&self, words: &[&str]) -> Result<(String, String)> {
        let output = self.adb(words)?.output()?;
        ensure!(output.status.success(), "{words:?}: {output:?}");
        let said = said(&output);
        Ok((String::from_utf8(output.stdout)?, said))
    }

    /// The sessions on the board, or those on the host.
    fn sessions(&self, mut varid: Command) -> Result<Vec<Value>> {
        let output = varid.output()?;
        ensure!(output.status.success(), "{varid:?}: {output:?}");
        let document: Value = serde_json::from_slice(&output.stdout)?;
        Ok(document["sessions"].as_array().context("no list")?.clone())
    }

    fn sessions_there(&self) -> Result<Vec<Value>> {
        self.sessions(self.adb(&["sessions", "--json"])?)
    }

    /// The only session of the host, whose state must be this one.
    fn pulled(&self, state: &str) -> Result<()> {
        let sessions = self.sessions(self.varid(&["sessions", "--json"])?)?;
        let states: Vec<_> = sessions.iter().map(|session| &session["state"]).collect();
        ensure!(states == [state], "{sessions:?}");
        Ok(())
    }

    /// `varid report` of what was pulled last, by symbol.
    fn report(&self) -> Result<Value> {
        let output = self
            .varid(&["report", "--by", "symbol", "--format", "json"])?
            .output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The last report has each of the app's kernels, and the system's: all of the run, and nothing was lost.
    fn has_all_of_the_run(&self) -> Result<()> {
        let report = self.report()?;
        println!(
            "device: {} samples, lost {}",
            report["samples"], report["lost"]
        );
        ensure!(report["event"] == "cycles", "{}", report["event"]);
        ensure!(report["lost"] == 0, "{}", report["lost"]);
        has_all_of_math(&report)?;
        let kernel = self_of(&report, |row| row["layer"] == "kernel")?;
        ensure!(kernel > 0, "no samples in the kernel: {report}");
        Ok(())
    }

    /// Bytes of the varid that is pushed.
    fn pushed_size(&self) -> Result<u64> {
        let target = testbed()?.release.parent().context("no target folder")?;
        Ok(target.join("board/arm64/varid").metadata()?.len())
    }

    /// Inode and name of each program of varid's on the board.
    fn programs(&self) -> Result<Vec<String>> {
        let listed = self.board.check(&format!("ls -i {HOME}/bin"))?;
        let programs = listed.lines().filter(|line| !line.ends_with(".used"));
        Ok(programs.map(str::to_owned).collect())
    }
}

/// SciMark and Linpack, once over.
fn app() -> Result<App> {
    App::new("math", "run", 2)
}

/// Its command line on the board.
fn app_line() -> Result<String> {
    let programs = std::path::Path::new(Board::PROGRAMS);
    Ok(app()?.arguments_in(programs, programs).join(" "))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Samples of a report's rows.
fn self_of(report: &Value, is_one: impl Fn(&Value) -> bool) -> Result<u64> {
    let rows = report["rows"].as_array().context("no rows")?;
    let samples = rows.iter().filter(|row| is_one(row));
    Ok(samples.filter_map(|row| row["self"].as_u64()).sum())
}

#[test]
fn an_app_is_profiled_on_the_board_by_three_commands_and_varid_is_pushed_once() -> Result<()> {
    let Some(host) = Host::new()? else {
        return Ok(());
    };
    let start = ["start", "--app", "org.example.math", "-e", "cycles"];
    let (_, first) = host.ok(&start)?;
    ensure!(first.contains(": pushing "), "{first}");
    let programs = host.programs()?;
    ensure!(programs.len() == 1, "{programs:?}");
    ensure!(
        host.board.check(&app_line()?)? == app()?.expected()?,
        "the app's result"
    );
    let (status, second) = host.ok(&["status"])?;
    ensure!(status.contains("org.example.math"), "{status}");
    let (_, third) = host.ok(&["stop"])?;
    ensure!(third.contains("pulled into"), "{third}");
    ensure!(!(second + &third).contains(": pushing "), "pushed again");
    ensure!(host.programs()? == programs, "another program is there");
    host.pulled("complete")?;
    host.has_all_of_the_run()?;

    // An old one is replaced, unless it runs: a copy does not.
    host.board.check(&format!(
        "cd {HOME}/bin && rm *.used && cp varid-* /tmp/old && rm varid-* && mv /tmp/old varid-0"
    ))?;
    let (_, fourth) = host.ok(&["status"])?;
    ensure!(fourth.contains(": pushing "), "{fourth}");
    let name = |programs: &[String]| {
        programs
            .iter()
            .map(|p| p.split_whitespace().last().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let now = host.programs()?;
    ensure!(
        name(&now) == name(&programs),
        "{programs:?}, then {now:?}: {fourth}"
    );
    Ok(())
}

#[test]
fn a_session_whose_cable_is_pulled_has_all_of_the_run() -> Result<()> {
    let Some(host) = Host::new()? else {
        return Ok(());
    };
    host.ok(&["start", "--app", "org.example.math", "-e", "cycles"])?;
    // It holds no connection, and waits until there is none.
    host.board.check(&format!(
        "rm -f /tmp/printed
        (while grep -q ' [0-9A-F]*:15B3 [0-9A-F]*:[0-9A-F]* 01 ' /proc/net/tcp /proc/net/tcp6; do usleep 10000; done
        {} > /tmp/printed 2>&1
        echo the app has ended > /dev/console) < /dev/null > /dev/null 2>&1 &",
        app_line()?
    ))?;
    host.board.unplug()?;
    host.board.await_console("the app has ended")?;

    // An address is connected anew.
    let (_, said) = host.ok(&["stop"])?;
    ensure!(said.contains("pulled into"), "{said}");
    ensure!(
        host.board.check("cat /tmp/printed")? == app()?.expected()?,
        "the app's result"
    );
    host.pulled("complete")?;
    host.has_all_of_the_run()
}

#[test]
fn a_recording_whose_cable_is_pulled_is_complete_up_to_then() -> Result<()> {
    let Some(host) = Host::new()? else {
        return Ok(());
    };
    let endless = App::new("math", "run", 10_000)?;
    let programs = std::path::Path::new(Board::PROGRAMS);
    let line = endless.arguments_in(programs, programs);
    let mut words = vec!["record", "-e", "cycles", "--"];
    words.extend(line.iter().map(String::as_str));
    let varid = host
        .adb(&words)?
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    // Some of it is in the file: far more than of the VM's own start, a tenth of a second.
    until(|| {
        let sizes = host
            .board
            .shell(&format!("stat -c %s {HOME}/sessions/*/perf.data"))?;
        let size = String::from_utf8_lossy(&sizes.stdout).trim().parse::<u64>();
        Ok(size.is_ok_and(|size| size > 60_000))
    })?;
    host.board.unplug()?;
    let output = varid.wait_with_output()?;
    ensure!(
        output.status.code() == Some(125) && said(&output).contains("the connection was lost"),
        "{output:?}"
    );
    // The cable is in again: a machine that is busy takes long to answer at first.
    host.board.await_adb()?;
    until(|| {
        let sessions = host.sessions_there()?;
        ensure!(sessions.len() == 1, "{sessions:?}");
        Ok(sessions[0]["state"] == "complete")
    })?;
    // The app goes with the recording of it.
    until(|| Ok(!host.board.shell("pidof artvm")?.status.success()))?;
    host.ok(&["pull"])?;
    host.pulled("complete")?;
    let report = host.report()?;
    let first = self_of(&report, |row| {
        row["symbol"]
            .as_str()
            .is_some_and(|s| s.starts_with("org.example.math."))
    })?;
    ensure!(first > 10, "{report}");
    Ok(())
}

/// Returns when something is so.
fn until(mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        ensure!(begun.elapsed() < PATIENCE, "it is never so");
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn a_full_device_ends_a_session_in_order_and_says_so() -> Result<()> {
    const SMALL: &str = "/data/local/tmp/small";
    let Some(mut host) = Host::new()? else {
        return Ok(());
    };
    host.there = Some(format!("{SMALL}/varid"));
    let mount = format!("umount -l {SMALL}; mkdir -p {SMALL} && mount -t tmpfs -o mode=755,size=");
    // Too small for varid itself.
    host.board.check(&format!("{mount}2m tmpfs {SMALL}"))?;
    let output = host.adb(&["status"])?.output()?;
    ensure!(
        output.status.code() == Some(1)
            && said(&output).contains(&format!("{SMALL}/varid has no room for varid (")),
        "{output:?}"
    );
    ensure!(
        host.board
            .check(&format!("ls {SMALL}/varid/bin"))?
            .is_empty(),
        "a part of it was left"
    );
    // Too small for what is recorded.
    let size = host.pushed_size()? / 1024 + 1600;
    host.board.check(&format!("{mount}{size}k tmpfs {SMALL}"))?;
    host.ok(&["status"])?;
    host.board.check(&format!(
        "free=$(df -k {SMALL} | awk 'NR == 2 {{ print $4 }}')
        dd if=/dev/zero of={SMALL}/other bs=1024 count=$((free - 1200)) 2>/dev/null"
    ))?;
    let mut start = vec!["start", "--app", "org.example.math", "-e", "cycles"];
    start.extend(["-F", "4999", "--stack", "full"]);
    host.ok(&start)?;
    // The app is none the worse for it.
    ensure!(
        host.board.check(&app_line()?)? == app()?.expected()?,
        "the app's result"
    );
    let (status, _) = host.ok(&["status"])?;
    ensure!(
        status.contains("no session runs") && status.contains("no space is left for"),
        "{status}"
    );
    let there = host.sessions_there()?;
    ensure!(
        there.len() == 1 && there[0]["state"] == "failed",
        "{there:?}"
    );
    let stop = host.adb(&["stop"])?.output()?;
    ensure!(
        stop.status.code() == Some(1) && said(&stop).contains("'varid --adb pull' copies it"),
        "{stop:?}"
    );
    host.ok(&["pull"])?;
    host.pulled("failed")?;
    // All that it counts can be read, up to when the space was used up.
    let report = host.report()?;
    ensure!(
        report["samples"] == there[0]["samples"] && report["lost"] == 0,
        "{report}"
    );
    // Whichever of its methods ran until then.
    let methods = self_of(&report, |row| {
        row["symbol"]
            .as_str()
            .is_some_and(|s| s.starts_with("org.example.math."))
    })?;
    ensure!(methods > 10, "{report}");
    // The daemon that was there ends by itself.
    host.board.check(&format!("umount -l {SMALL}"))?;
    Ok(())
}
