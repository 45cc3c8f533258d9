//! Tests that varid records what is configured: by a file, for services, of methods, and while the file changes.

mod limits;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use varid_tests::{
    App, Home, Running, attach_to, beside_raw, judge, manifest, printed, skip_without_root, testbed,
};

const CLASS: &str = "org.example.shadow.Methods.";

/// Serializes tests that run apps under the same names.
static NAMES: Mutex<()> = Mutex::new(());

fn name(workload: &str) -> String {
    format!("org.example.{workload}.{}", std::process::id())
}

/// Starts a workload under a name that no process of another program has.
fn app(workload: &'static str) -> Result<Running> {
    let mut arguments = App::new(workload, "run", 100_000)?.arguments();
    let mut named = arguments.iter_mut().skip_while(|word| *word != "--name");
    *named.nth(1).context("it has no name")? = name(workload);
    let mut command = Command::new(&arguments[0]);
    command.args(&arguments[1..]).stdin(Stdio::null());
    Ok(Running(command.stdout(Stdio::null()).spawn()?))
}

#[test]
fn samples_are_recorded_exactly_if_their_innermost_named_method_matches() -> Result<()> {
    if skip_without_root("configuration") {
        return Ok(());
    }
    let program = testbed()?.shadowvm.join("shadowvm");
    let dex = testbed()?.shadowvm.join("shadow.dex");
    let files = ["varid-tunnel".to_owned(), dex.display().to_string()];
    let named = |texts: &[&str]| -> Vec<String> {
        let name = |text: &&str| match text.strip_prefix('!') {
            Some(out) => format!("!{CLASS}{out}"),
            None => format!("{CLASS}{text}"),
        };
        texts.iter().map(name).collect()
    };
    for patterns in [named(&["m56"]), named(&["!m49", "!m33"])] {
        let mut options = beside_raw("4999").to_vec();
        for pattern in &patterns {
            options.extend(["--method", pattern]);
        }
        let mut vm = Command::new(&program);
        vm.arg("--dex").arg(&dex).stdin(Stdio::null());
        vm.args([
            "--name",
            "org.example.shadow",
            "--rounds",
            "6",
            "--threads",
            "1",
        ]);
        let (recording, _) = attach_to(&mut vm, &files, &options)?;
        let mut arguments = vec![recording.session(), recording.maps(), program.clone()];
        arguments.extend(patterns.iter().map(PathBuf::from));
        let found = judge("filtered.py", arguments)?;
        println!("{patterns:?}: {found}");
        let of = |name: &str| found[name].as_u64().unwrap_or(0);
        ensure!(of("asked for") > 10 && of("not asked for") > 10, "{found}");
        // Before the process has been found, its frames are unknown.
        let incomplete = found["filtered"]["method-incomplete"].as_u64().unwrap_or(0);
        ensure!(incomplete * 50 < of("samples"), "{found}");
        let counts = recording.counts()?;
        ensure!(
            counts["samples"].as_u64() == Some(of("in the recording")),
            "{counts}"
        );
    }
    Ok(())
}

#[test]
fn a_changed_file_changes_what_is_recorded_while_apps_run_and_a_wrong_one_nothing() -> Result<()> {
    if skip_without_root("configuration") {
        return Ok(());
    }
    let _alone = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let home = Home::new()?;
    let (mut math, mut truth) = (app("math")?, app("truth")?);
    let file = home.write(
        "varid.toml",
        &format!(
            "apps = [{:?}]\nmethods = [\"org.example.math.LU.*\"]\nfrequency = 499\n",
            name("math")
        ),
    )?;
    let session = home.path("session");
    let mut start = home.varid()?;
    start
        .args(["start", "--shim", "bpf", "--config"])
        .arg(&file);
    printed(start.arg("-o").arg(&session))?;
    let mut apps = [&mut math, &mut truth];
    let count = |session: &Value| session["samples"].as_u64().unwrap_or(0);
    home.wait(&mut apps, |session| count(session) > 50)?;

    let read_again = |session: &Value, what: &str| {
        let told = session["configuration"].as_str();
        told.is_some_and(|told| told.contains(what))
    };
    home.write(
        "varid.toml",
        &format!(
            "apps = [{:?}]\nmethods = [\"org.example.truth.*\"]\nfrequency = 997\nstack = \"full\"\n",
            name("truth")
        ),
    )?;
    let status = home.wait(&mut apps, |session| {
        read_again(session, "changed: apps, methods, frequency")
    })?;
    ensure!(read_again(&status, "stop and start one: stack"), "{status}");
    let before = count(&status);
    home.wait(&mut apps, |session| count(session) > before + 50)?;

    home.write("varid.toml", "apps = [\"org.example.math\"]\nmetods = []\n")?;
    let mistake = "varid.toml:2:1: a configuration has no key 'metods': did you mean 'methods'?";
    let status = home.wait(&mut apps, |session| read_again(session, mistake))?;
    let before = count(&status);
    home.wait(&mut apps, |session| count(session) > before + 50)?;
    std::fs::remove_file(&file)?;
    home.wait(&mut apps, |session| {
        read_again(session, "cannot read the configuration")
    })?;
    printed(home.varid()?.arg("stop"))?;

    ensure!(math.runs()? && truth.runs()?, "an app has ended");
    let phases = [
        session.display().to_string(),
        format!("{}:org.example.math.LU.", math.pid()),
        format!("{}:org.example.truth.", truth.pid()),
    ];
    println!("{}", judge("phases.py", phases)?);
    let manifest = manifest(&session)?;
    let changes = manifest["changes"].as_array().context("no changes")?;
    let of = |at: usize| &changes[at];
    ensure!(changes.len() == 3, "{changes:?}");
    ensure!(
        of(0)["waiting"] == serde_json::json!(["stack"]),
        "{changes:?}"
    );
    ensure!(manifest["stack"] == "vertical", "{manifest}");
    let configuration = of(0)["configuration"].as_str().unwrap_or_default();
    ensure!(configuration.contains("frequency = 997"), "{configuration}");
    ensure!(
        of(1)["error"]
            .as_str()
            .is_some_and(|error| error.contains(mistake)),
        "{changes:?}"
    );
    ensure!(
        of(1)["changed"].is_null() && of(2)["error"].is_string(),
        "{changes:?}"
    );
    let report = printed(home.varid()?.arg("report").arg("-i").arg(&session))?;
    for note in [
        "the configuration changed apps, methods, frequency",
        mistake,
        "filtered      by method ",
        " at first 499 Hz",
    ] {
        ensure!(report.contains(note), "{report}");
    }
    Ok(())
}

#[test]
fn a_report_by_service_adds_up_the_processes_of_each() -> Result<()> {
    if skip_without_root("configuration") {
        return Ok(());
    }
    let _alone = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let home = Home::new()?;
    let names = ["math", "truth", "vm"];
    let mut running = Vec::new();
    for name in names {
        running.push(app(name)?);
    }
    let file = home.write(
        "varid.toml",
        &format!(
            "services = [\"bench\", \"checks\"]\n[service.bench]\nprocesses = [{:?}, \"*.{}\"]\n[service.checks]\nprocesses = [{:?}]\n",
            name("math"),
            name("vm").trim_start_matches("org.example."),
            name("truth")
        ),
    )?;
    let session = home.path("session");
    let mut start = home.varid()?;
    start.args(["start", "--config"]).arg(&file);
    let said = printed(start.arg("-o").arg(&session))?;
    ensure!(said.contains("profiling bench, checks"), "{said}");
    let mut apps: Vec<_> = running.iter_mut().collect();
    let count = |session: &Value| session["samples"].as_u64().unwrap_or(0);
    // From when all processes are there.
    let status = home.wait(&mut apps, |session| session["processes"] == 3)?;
    let before = count(&status);
    home.wait(&mut apps, |session| count(session) > before + 600)?;
    printed(home.varid()?.arg("stop"))?;
    let report = |by: &str| -> Result<Value> {
        let mut report = home.varid()?;
        report.args(["report", "--by", by, "--format", "json", "-i"]);
        Ok(serde_json::from_str(&printed(report.arg(&session))?)?)
    };
    let sum = |report: &Value, belongs: &dyn Fn(&Value) -> bool| -> u64 {
        let rows = report["rows"].as_array().into_iter().flatten();
        let rows = rows.filter(|row| belongs(row));
        rows.filter_map(|row| row["self"].as_u64()).sum()
    };
    let (services, processes) = (report("service")?, report("process")?);
    let pids: Vec<u64> = running.iter().map(|app| app.pid().into()).collect();
    for (service, members) in [
        ("bench", [pids[0], pids[2]].to_vec()),
        ("checks", vec![pids[1]]),
    ] {
        let by_service = sum(&services, &|row| row["service"] == service);
        let by_process = sum(&processes, &|row| {
            row["pid"]
                .as_u64()
                .is_some_and(|pid| members.contains(&pid))
        });
        ensure!(
            by_service == by_process && by_service > 0,
            "{services} {processes}"
        );
    }
    let all = sum(&services, &|_| true);
    ensure!(Some(all) == services["samples"].as_u64(), "{services}");
    Ok(())
}
