//! Tests that each sample follows the configuration at its time when the processes or the settings change.

mod rate;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use varid_tests::{
    Home, Running, counter_sums, judge, manifest, printed, skip_without_root, testbed,
};

/// More rounds than any test lasts.
const ROUNDS: &str = "10000";
/// The prefix of shadowvm's methods.
const METHODS: &str = "org.example.shadow.";

/// Returns a name that no process of another program has.
fn name(what: &str) -> String {
    format!("org.example.reread.{what}.{}", std::process::id())
}

fn shadowvm() -> Result<Command> {
    let folder = &testbed()?.shadowvm;
    let mut command = Command::new(folder.join("shadowvm"));
    command.arg("--dex").arg(folder.join("shadow.dex"));
    command.args(["--threads", "1"]).stdin(Stdio::null());
    Ok(command)
}

/// Starts shadowvm under a name, and waits for all its threads.
fn vm(what: &str) -> Result<Running> {
    let mut command = shadowvm()?;
    command.args(["--quiet", "--rounds", ROUNDS, "--name", &name(what)]);
    let mut vm = Running(command.spawn()?);
    let tasks = format!("/proc/{}/task", vm.pid());
    while !shows(vm.pid(), &name(what))?
        || std::fs::read_dir(&tasks)?.count() < 2
        || !computes(vm.pid())?
    {
        ensure!(vm.runs()?, "it has ended");
    }
    Ok(vm)
}

/// Returns true if each thread of a process has used enough CPU time to be in its methods.
fn computes(pid: u32) -> Result<bool> {
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // User time in hundredths of a second, the 14th field (proc(5)). The name, the second field, has no spaces
        // here.
        let stat = std::fs::read_to_string(thread?.path().join("stat"))?;
        let ticks: u64 = stat.split(' ').nth(13).context("a short line")?.parse()?;
        if ticks < 2 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if a process has this name.
fn shows(pid: u32, name: &str) -> Result<bool> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline"))?;
    Ok(line.starts_with(name.as_bytes()))
}

/// A session with a configuration file that may change.
struct Changing {
    home: Home,
    session: PathBuf,
    /// The daemon, unless `start` launched it.
    _daemon: Option<Running>,
}

impl Changing {
    fn start(options: &[&str], text: &str) -> Result<Self> {
        Self::start_in(&[], options, text)
    }

    /// Starts a daemon with these environment variables. One that `start` launches would not inherit them.
    fn start_in(environment: &[(&str, String)], options: &[&str], text: &str) -> Result<Self> {
        let home = Home::new()?;
        let session = home.path("session");
        let file = home.write("varid.toml", text)?;
        let mut daemon = None;
        if !environment.is_empty() {
            let mut command = home.varid()?;
            command.arg("daemon").stderr(Stdio::null());
            command.envs(environment.iter().map(|(key, value)| (key, value)));
            let daemon = daemon.insert(Running(command.spawn()?));
            while home.status()?["daemon"].is_null() {
                ensure!(daemon.runs()?, "the daemon has ended");
            }
        }
        let mut start = home.varid()?;
        start.arg("start").args(options).arg("--config").arg(file);
        printed(start.arg("-o").arg(&session))?;
        Ok(Self {
            home,
            session,
            _daemon: daemon,
        })
    }

    /// Waits for this number of further samples in this number of processes.
    fn records(&self, apps: &mut [&mut Running], samples: u64, processes: u64) -> Result<()> {
        let count = |session: &Value| session["samples"].as_u64().unwrap_or(0);
        let before = count(&self.home.wait(apps, |_| true)?);
        let enough = |session: &Value| {
            count(session) > before + samples && session["processes"].as_u64() >= Some(processes)
        };
        self.home.wait(apps, enough).map(drop)
    }

    /// Writes another text, and waits until it takes effect, which the recording notes.
    fn change(&self, apps: &mut [&mut Running], text: &str, told: &str) -> Result<Value> {
        self.home.write("varid.toml", text)?;
        let stands = |session: &Value| {
            let said = session["configuration"].as_str();
            said.is_some_and(|said| said.contains(told))
        };
        self.home.wait(apps, stands)
    }

    fn stop(&self) -> Result<Value> {
        printed(self.home.varid()?.arg("stop"))?;
        manifest(&self.session)
    }

    fn report(&self, by: &str) -> Result<Value> {
        let mut report = self.home.varid()?;
        report.args(["report", "--by", by, "--format", "json", "-i"]);
        Ok(serde_json::from_str(&printed(report.arg(&self.session))?)?)
    }

    /// Checks that each phase, from one change to the next, has samples of one process only, with names that have this
    /// prefix.
    fn phases(&self, pids: &[u32], name: &str) -> Result<()> {
        let phases = pids.iter().map(|pid| format!("{pid}~{name}"));
        let session = self.session.display().to_string();
        let found = judge("phases.py", [session].into_iter().chain(phases))?;
        println!("{found}");
        Ok(())
    }

    /// Returns the number of events that the daemon has open.
    fn events(&self) -> Result<usize> {
        let pid = self.home.status()?["daemon"]["pid"]
            .as_u64()
            .context("no daemon")?;
        let links = std::fs::read_dir(format!("/proc/{pid}/fd"))?.flatten();
        let links = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        let events = links.filter(|link| link.to_string_lossy().contains("[perf_event]"));
        Ok(events.count())
    }
}

fn apps(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|what| name(what)).collect();
    format!("apps = {names:?}\nfrequency = 499\n")
}

/// Returns the samples of the matching rows of a report.
fn samples(report: &Value, belongs: impl Fn(&Value) -> bool) -> u64 {
    let rows = report["rows"].as_array().into_iter().flatten();
    let rows = rows.filter(|row| belongs(row));
    rows.filter_map(|row| row["self"].as_u64()).sum()
}

#[test]
fn a_process_that_leaves_and_rejoins_is_recorded_once_and_while_it_is_selected() -> Result<()> {
    if skip_without_root("reread") {
        return Ok(());
    }
    for source in ["bpf", "perf"] {
        let (one, other) = (format!("one.{source}"), format!("other.{source}"));
        let (mut first, mut second) = (vm(&one)?, vm(&other)?);
        let pids = [first.pid(), second.pid(), first.pid()];
        let mut running = [&mut first, &mut second];
        let session = Changing::start(&["--shim", source], &apps(&[&one]))?;
        session.records(&mut running, 100, 1)?;
        let events = session.events()?;
        for (next, changed) in [(&other, "apps"), (&one, "apps, frequency")] {
            // The rate in the note identifies the change.
            let rate = if changed == "apps" { 499 } else { 997 };
            let text = apps(&[next]).replace("499", &rate.to_string());
            let told = match source {
                "bpf" => format!("changed: {changed}"),
                _ if rate == 499 => "changed: apps".to_owned(),
                _ => "start one: frequency".to_owned(),
            };
            let status = session.change(&mut running, &text, &told)?;
            ensure!(status["target"] == name(next), "{status}");
            session.records(&mut running, 300, 1)?;
            ensure!(
                session.events()? == events,
                "{source}: events are left open"
            );
        }
        session.stop()?;
        // The stack copy of perf does not contain this VM's frames.
        let method = match source {
            "bpf" => METHODS,
            _ => "",
        };
        session.phases(&pids, method)?;
    }
    Ok(())
}

#[test]
fn names_are_recorded_until_the_session_ends_that_was_started_with_them() -> Result<()> {
    if skip_without_root("reread") {
        return Ok(());
    }
    let mut vm = vm("kind")?;
    let pid = vm.pid();
    let session = Changing::start(&[], &apps(&["kind"]))?;
    session.records(&mut [&mut vm], 50, 1)?;
    let told = "from the next session on, stop and start one: apps, all";
    session.change(&mut [&mut vm], "all = true\nfrequency = 499\n", told)?;
    session.records(&mut [&mut vm], 300, 1)?;
    let manifest = session.stop()?;
    let change = &manifest["changes"][0];
    ensure!(change["waiting"] == json!(["apps", "all"]), "{change}");
    session.phases(&[pid], METHODS)
}

#[test]
fn the_first_of_all_that_do_anything_are_recorded_and_all_when_the_limit_goes() -> Result<()> {
    if skip_without_root("reread") {
        return Ok(());
    }
    let (mut first, mut second) = (vm("first")?, vm("second")?);
    let pids = [first.pid(), second.pid()];
    let mut running = [&mut first, &mut second];
    let all = "all = true\nfrequency = 499\n";
    // Fewer than there are kernel threads, which have the lowest ids and mostly sleep.
    for (processes, raised) in [(24, false), (1, true)] {
        let text = format!("{all}[limits]\nprocesses = {processes}\n");
        let session = Changing::start(&[], &text)?;
        // A single process may have little to do.
        let enough = if raised { 0 } else { 200 };
        session.records(&mut running, enough, 1)?;
        if raised {
            session.change(&mut running, all, "changed: limits")?;
            session.records(&mut running, 1500, 2)?;
        }
        session.stop()?;
        let report = session.report("process")?;
        for pid in pids {
            let of = samples(&report, |row| row["pid"] == pid);
            ensure!(of > 0, "none of {pid}, {processes} processes: {report}");
        }
    }
    Ok(())
}

#[test]
fn a_process_that_was_left_out_is_recorded_as_the_program_that_it_becomes() -> Result<()> {
    if skip_without_root("reread") {
        return Ok(());
    }
    let go = tempfile::NamedTempFile::new()?;
    let mut shell = Command::new("bash");
    let vm = shadowvm()?;
    shell.arg0(name("shell")).arg("-c");
    shell.arg("while [ ! -s \"$0\" ]; do :; done; exec -a \"$@\"");
    shell
        .arg(go.path())
        .arg(name("becomes"))
        .arg(vm.get_program());
    shell
        .args(vm.get_args())
        .args(["--quiet", "--rounds", "40"]);
    let mut running = Running(shell.stdin(Stdio::null()).spawn()?);
    let pid = running.pid();
    let session = Changing::start(&[], &apps(&["shell"]))?;
    session.records(&mut [&mut running], 20, 1)?;
    let then = apps(&["becomes"]);
    session.change(&mut [&mut running], &then, "changed: apps")?;
    std::fs::write(go.path(), "go")?;
    session.records(&mut [&mut running], 300, 1)?;
    session.stop()?;
    let report = session.report("symbol")?;
    let named = |row: &Value| {
        let symbol = row["symbol"].as_str();
        symbol.is_some_and(|symbol| symbol.starts_with(METHODS))
    };
    ensure!(samples(&report, named) > 0, "process {pid}: {report}");
    Ok(())
}

#[test]
fn a_process_counts_for_a_service_from_the_time_on_that_it_has_one() -> Result<()> {
    if skip_without_root("reread") {
        return Ok(());
    }
    let mut vm = vm("served")?;
    let pid = vm.pid();
    let session = Changing::start(&[], &apps(&["served"]))?;
    session.records(&mut [&mut vm], 100, 1)?;
    let then = format!(
        "{}[service.checks]\nprocesses = [{:?}]\n",
        apps(&["served"]),
        name("served")
    );
    session.change(&mut [&mut vm], &then, "changed: service")?;
    // The next counted samples may precede the change, by as long as varid waited for a processor.
    session.records(&mut [&mut vm], 1000, 1)?;
    let manifest = session.stop()?;
    let since = &manifest["changes"][0]["time_ns"];
    let expected = json!([{ "pid": pid, "since_ns": since, "service": "checks" }]);
    ensure!(manifest["memberships"] == expected, "{manifest}");
    let report = session.report("service")?;
    let served = samples(&report, |row| row["service"] == "checks");
    let all = samples(&report, |_| true);
    ensure!(served > 50 && all - served > 100, "{report}");
    Ok(())
}

#[test]
fn calls_are_counted_once_and_named_where_their_vm_leaves_and_comes_back() -> Result<()> {
    if skip_without_root("reread") {
        return Ok(());
    }
    let mut command = shadowvm()?;
    command.args(["--counts", "--quiet", "--rounds", "20"]);
    command.args(["--name", &name("counted")]);
    // It counts from its start on, for any session.
    command.env("VARID_TACTIC", "method-invoke");
    let mut vm = Running(command.stdout(Stdio::piped()).spawn()?);
    let pid = vm.pid();
    let config = |what| format!("tactic = \"method-invoke\"\n{}", apps(&[what]));
    let session = Changing::start(&["--shim", "bpf"], &config("counted"))?;
    session.records(&mut [&mut vm], 200, 1)?;
    // While it is stopped, it makes no calls that would not be counted.
    let signal = |signal| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal);
    signal(nix::sys::signal::SIGSTOP)?;
    session.change(&mut [&mut vm], &config("nobody"), "changed: apps")?;
    session
        .home
        .wait(&mut [&mut vm], |session| session["processes"] == 0)?;
    session.home.write("varid.toml", &config("counted"))?;
    session
        .home
        .wait(&mut [&mut vm], |session| session["processes"] == 1)?;
    signal(nix::sys::signal::SIGCONT)?;
    let mut said = String::new();
    let mut output = vm.0.stdout.take().context("it cannot be heard")?;
    std::io::Read::read_to_string(&mut output, &mut said)?;
    ensure!(vm.0.wait()?.success(), "{said}");
    session.stop()?;

    let counts = said.lines().filter(|line| line.contains(" counts "));
    let calls = counts.filter_map(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    let truth = calls.sum::<u64>();
    let sums = counter_sums(&session.session.join("contexts.data"))?;
    let counted = sums.get("calls").copied().unwrap_or_default();
    println!("{counted} of {truth} calls are counted");
    // The VM does not count until it reads the new order.
    ensure!(counted <= truth && counted * 2 > truth, "{counted} {truth}");

    let report = session.report("symbol")?;
    let methods = |row: &Value| {
        let symbol = row["symbol"].as_str();
        symbol.is_some_and(|symbol| symbol.starts_with(METHODS))
    };
    let unknown = |row: &Value| row["image"] == "[unknown]";
    let (named, lost) = (samples(&report, methods), samples(&report, unknown));
    ensure!(
        named > 100 && lost * 100 < named,
        "{lost} of {named}: {report}"
    );
    Ok(())
}
