//! Tests `varid --adb` with a device: the ARM board, over a real adb. This machine is the host.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};
use varid_tests::{App, Board, board, has_all_of_math, testbed};

/// varid's folder on a device with a root shell.
const HOME: &str = "/data/local/tmp/varid";

/// The timeout for events that normally take much less.
const PATIENCE: Duration = Duration::from_secs(600);

/// A host with the board attached, and without sessions on either.
struct Host {
    board: MutexGuard<'static, Board>,
    home: tempfile::TempDir,
    /// varid's folder on the board, if it is not the default.
    there: Option<String>,
}

impl Host {
    /// Attaches the board. None if the test is skipped; the reason is printed.
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

    /// Returns varid on the host as a command.
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

    /// Returns `varid --adb=SERIAL` as a command.
    fn adb(&self, words: &[&str]) -> Result<Command> {
        let serial = format!("--adb={}", self.board.serial());
        let mut all = vec![serial.as_str()];
        all.extend(words);
        self.varid(&all)
    }

    /// Runs a command that must succeed. Returns standard output and standard error.
    fn ok(&self, words: &[&str]) -> Result<(String, String)> {
        let output = self.adb(words)?.output()?;
        ensure!(output.status.success(), "{words:?}: {output:?}");
        let said = said(&output);
        Ok((String::from_utf8(output.stdout)?, said))
    }

    /// Returns the sessions on the board or the host.
    fn sessions(&self, mut varid: Command) -> Result<Vec<Value>> {
        let output = varid.output()?;
        ensure!(output.status.success(), "{varid:?}: {output:?}");
        let document: Value = serde_json::from_slice(&output.stdout)?;
        Ok(document["sessions"].as_array().context("no list")?.clone())
    }

    fn sessions_there(&self) -> Result<Vec<Value>> {
        self.sessions(self.adb(&["sessions", "--json"])?)
    }

    /// Checks that the host has one session, in this state.
    fn pulled(&self, state: &str) -> Result<()> {
        let sessions = self.sessions(self.varid(&["sessions", "--json"])?)?;
        let states: Vec<_> = sessions.iter().map(|session| &session["state"]).collect();
        ensure!(states == [state], "{sessions:?}");
        Ok(())
    }

    /// Returns `varid report` of the latest pulled session, by symbol.
    fn report(&self) -> Result<Value> {
        let output = self
            .varid(&["report", "--by", "symbol", "--format", "json"])?
            .output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Checks that the latest report has all kernels of the app, and kernel functions, so that the recording is
    /// complete and lossless.
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

    /// Returns the size of the varid that is pushed, in bytes.
    fn pushed_size(&self) -> Result<u64> {
        let target = testbed()?.release.parent().context("no target folder")?;
        Ok(target.join("board/arm64/varid").metadata()?.len())
    }

    /// Returns inode and name of each of varid's programs on the board.
    fn programs(&self) -> Result<Vec<String>> {
        let listed = self.board.check(&format!("ls -i {HOME}/bin"))?;
        let programs = listed.lines().filter(|line| !line.ends_with(".used"));
        Ok(programs.map(str::to_owned).collect())
    }
}

/// Returns one run of SciMark and Linpack.
fn app() -> Result<App> {
    App::new("math", "run", 2)
}

/// Returns the app's command line on the board.
fn app_line() -> Result<String> {
    let programs = std::path::Path::new(Board::PROGRAMS);
    Ok(app()?.arguments_in(programs, programs).join(" "))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the self samples of the matching rows of a report.
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

    // An old program is replaced unless it runs. A copy has another inode.
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
    // The script uses no connection itself. It starts the app when the board has no connection.
    host.board.check(&format!(
        "rm -f /tmp/printed
        (while grep -q ' [0-9A-F]*:15B3 [0-9A-F]*:[0-9A-F]* 01 ' /proc/net/tcp /proc/net/tcp6; do usleep 10000; done
        {} > /tmp/printed 2>&1
        echo the app has ended > /dev/console) < /dev/null > /dev/null 2>&1 &",
        app_line()?
    ))?;
    host.board.unplug()?;
    host.board.await_console("the app has ended")?;

    // A device that is given by its address is connected again.
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
    // The file is far larger than the start of the VM, a tenth of a second, would make it.
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
    // The cable is plugged in again. On a busy machine the first answer takes long.
    host.board.await_adb()?;
    until(|| {
        let sessions = host.sessions_there()?;
        ensure!(sessions.len() == 1, "{sessions:?}");
        Ok(sessions[0]["state"] == "complete")
    })?;
    // The app ends with its recording.
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

/// Waits until a condition is true.
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
    // Too small for the recording.
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
    // The app is not affected.
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
    // All counted samples can be read, up to the time when the disk was full.
    let report = host.report()?;
    ensure!(
        report["samples"] == there[0]["samples"] && report["lost"] == 0,
        "{report}"
    );
    // Any method that ran until then counts.
    let methods = self_of(&report, |row| {
        row["symbol"]
            .as_str()
            .is_some_and(|s| s.starts_with("org.example.math."))
    })?;
    ensure!(methods > 10, "{report}");
    // The daemon of that folder ends by itself.
    host.board.check(&format!("umount -l {SMALL}"))?;
    Ok(())
}
