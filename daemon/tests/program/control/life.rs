//! Sessions start, run beside each other and end.

use super::support::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn start_waits_for_an_app_and_stop_keeps_the_samples() {
    let home = Home::new();
    let said = home.ok(&["start", "--app", "org.example.later"]);
    assert!(said.contains("waiting for org.example.later"), "{said}");
    assert_eq!(
        home.session("org.example.later").unwrap()["state"],
        "waiting"
    );

    let app = App::run("org.example.later");
    wait_until("the app is seen", || {
        home.session("org.example.later").unwrap()["state"] == "recording"
    });
    home.wait_for_samples("org.example.later");
    let stopped = home.ok(&["stop"]);

    assert_eq!(folder(&stopped), folder(&said));
    let (pids, count) = sampled(&folder(&said));
    assert_eq!(pids, BTreeSet::from([app.pid()]));
    assert!(
        count > 0 && stopped.starts_with(&format!("{count} samples")),
        "{count}: {stopped}"
    );
    assert_eq!(home.sessions()[0]["state"], "complete");
}

#[test]
fn without_the_shim_apps_that_come_later_are_found_too() {
    let home = Home::new();
    let said = home.ok(&["start", "--app", "org.example.copied", "--shim", "perf"]);
    assert!(
        said.contains("(perf)") && said.contains("waiting for org.example.copied"),
        "{said}"
    );
    for _ in 0..2 {
        // The counts may still be those of the first process.
        let app = App::run("org.example.copied");
        wait_for_process(&folder(&said), app.pid());
    }
    home.ok(&["stop"]);
    assert_eq!(sampled(&folder(&said)).0.len(), 2, "both times that it ran");
}

#[test]
fn an_app_that_runs_already_is_recorded_at_once() {
    let home = Home::new();
    let app = App::run("org.example.running");
    let said = home.ok(&["start", "--app", "org.example.running", "-F", "500"]);
    assert!(
        said.contains("profiling org.example.running") && said.contains("500 Hz"),
        "{said}"
    );
    home.wait_for_samples("org.example.running");
    home.ok(&["stop", "org.example.running"]);
    assert_eq!(sampled(&folder(&said)).0, BTreeSet::from([app.pid()]));
}

#[test]
fn two_sessions_at_once_do_not_mix() {
    let home = Home::new();
    let (one, two) = (App::run("org.example.one"), App::run("org.example.two"));
    let first = home.ok(&["start", "--app", "org.example.one"]);
    let second = home.ok(&["start", "--pid", &two.pid().to_string()]);
    assert_ne!(folder(&first), folder(&second));
    let of_two = format!("pid {}", two.pid());
    home.wait_for_samples("org.example.one");
    home.wait_for_samples(&of_two);

    home.ok(&["stop", "org.example.one"]);
    assert!(
        home.session("org.example.one").is_none(),
        "only the one that was named is stopped"
    );
    assert_eq!(home.session(&of_two).unwrap()["state"], "recording");
    home.ok(&["stop"]);

    assert_eq!(sampled(&folder(&first)).0, BTreeSet::from([one.pid()]));
    assert_eq!(sampled(&folder(&second)).0, BTreeSet::from([two.pid()]));
}

#[test]
fn a_folder_is_recorded_into_once_at_a_time() {
    let home = Home::new();
    let app = App::run("org.example.same");
    let output = home.path.join("mine");
    let (pid, output) = (app.pid().to_string(), output.to_str().unwrap());
    home.ok(&["start", "--pid", &pid, "-o", output]);
    let reason = home.fails(&["start", "--pid", &pid, "-o", output]);
    assert!(
        reason.contains(output) && reason.contains("being recorded"),
        "{reason}"
    );
    let reason = home.fails_with(125, &["record", "-o", output, "--", "true"]);
    assert!(reason.contains("being recorded"), "{reason}");
    assert_eq!(home.status()["sessions"].as_array().unwrap().len(), 1);
    home.ok(&["stop", output]);
}

#[test]
fn a_session_ends_with_its_only_process() {
    let home = Home::new();
    let app = App::run("org.example.mortal");
    let said = home.ok(&["start", "--pid", &app.pid().to_string()]);
    home.wait_for_samples(&format!("pid {}", app.pid()));
    drop(app);
    wait_until("the session has ended", || {
        home.status()["sessions"].as_array().unwrap().is_empty()
    });
    let sessions = home.sessions();
    assert_eq!(
        (sessions.len(), &sessions[0]["state"]),
        (1, &"complete".into())
    );
    assert!(sampled(&folder(&said)).1 > 0);
}

#[test]
fn a_session_ends_when_its_time_is_over() {
    let home = Home::new();
    let app = App::run("org.example.timed");
    home.ok(&[
        "start",
        "--pid",
        &app.pid().to_string(),
        "--duration",
        "200ms",
    ]);
    wait_until("the time is over", || {
        home.status()["sessions"].as_array().unwrap().is_empty()
    });
    assert_eq!(home.sessions()[0]["state"], "complete");
    let reason = home.fails(&["stop"]);
    assert!(reason.contains("no session runs"), "{reason}");
}

/// Where the compressed records of a session begin, in bytes of its perf.data.
fn compressed_records(session: &Path) -> Vec<usize> {
    const PERF_RECORD_COMPRESSED: u32 = 81;
    let bytes = fs::read(session.join("perf.data")).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (mut at, size) = (number(40), number(48));
    let end = at + size;
    let mut compressed = Vec::new();
    while at < end {
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        if kind == PERF_RECORD_COMPRESSED {
            compressed.push(at);
        }
        at += usize::from(u16::from_le_bytes(
            bytes[at + 6..at + 8].try_into().unwrap(),
        ));
    }
    compressed
}

#[test]
fn a_daemons_session_is_compressed_also_after_its_configuration_has_changed() {
    let home = Home::new();
    let target = "org.example.small";
    let _app = App::run(target);
    let file = home.path.join("varid.toml");
    let write = |more: &str| fs::write(&file, format!("apps = [\"{target}\"]\n{more}")).unwrap();
    write("");
    let said = home.ok(&["start", "--compress", "--config", file.to_str().unwrap()]);
    assert!(said.contains("note: its records are compressed"), "{said}");
    let session = folder(&said);
    home.wait_for_samples(target);
    write("methods = [\"!no.such.*\"]\n");
    wait_until("the file is read again", || {
        let status = home.session(target).unwrap();
        let read = status["configuration"].as_str().unwrap_or_default();
        read.contains("changed: methods")
    });
    let before = fs::metadata(session.join("perf.data")).unwrap().len() as usize;
    wait_until("compressed records behind it", || {
        compressed_records(&session).iter().any(|at| *at >= before)
    });
    home.ok(&["stop"]);
    assert!(compressed_records(&session)[0] < before);
    assert!(sampled(&session).1 > 0);
    let reader = varid_recording::SessionReader::open(&session).unwrap();
    let request = reader.manifest().request.as_ref().unwrap().to_json();
    assert_eq!(request["output"]["compress"], true);
    assert_eq!(request["config"], serde_json::Value::Null);
}

#[test]
fn the_next_process_of_an_app_that_exits_at_once_is_awaited() {
    let home = Home::new();
    let said = home.ok(&["start", "--app", "org.example.short"]);
    for _ in 0..3 {
        let mut app = App::with_work("org.example.short", 1);
        app.0.wait().unwrap();
    }
    let last = App::run("org.example.short");
    wait_for_process(&folder(&said), last.pid());
    home.ok(&["stop"]);
    assert!(sampled(&folder(&said)).0.contains(&last.pid()));
    assert_eq!(home.sessions()[0]["state"], "complete");
}

#[test]
fn there_is_a_bound_to_sessions() {
    if !is_root() {
        println!(
            "skipped: the bound to sessions: rings of so many are more than an ordinary user may lock"
        );
        return;
    }
    let home = Home::new();
    for number in 0..16 {
        home.ok(&[
            "start",
            "--app",
            &format!("org.example.none{number}"),
            "--ring-pages",
            "16",
        ]);
    }
    let reason = home.fails(&["start", "--app", "org.example.more", "--ring-pages", "16"]);
    assert!(reason.contains("16 sessions run already"), "{reason}");
    assert_eq!(home.ok(&["stop"]).lines().count(), 16);
    assert!(
        home.sessions()
            .iter()
            .all(|session| session["state"] == "complete")
    );
}

#[test]
fn a_signal_to_the_daemon_completes_its_sessions() {
    let home = Home::new();
    let mut daemon = home
        .command(&["daemon"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the daemon listens", || home.daemon_pid().is_some());
    assert_eq!(home.daemon_pid(), Some(daemon.id()));
    let reason = home.fails(&["daemon"]);
    assert!(reason.contains("runs already"), "{reason}");

    let app = App::run("org.example.kept");
    home.ok(&["start", "--pid", &app.pid().to_string()]);
    home.wait_for_samples(&format!("pid {}", app.pid()));
    kill(daemon.id(), libc::SIGTERM);
    assert!(daemon.wait().unwrap().success());
    assert!(!home.socket().exists(), "the socket goes with its daemon");
    let sessions = home.sessions();
    assert_eq!(sessions[0]["state"], "complete");
    assert!(sessions[0]["samples"].as_u64().unwrap() > 0);
}
