//! Exit codes and what is said, verb by verb.

use super::support::*;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
fn a_command_that_cannot_be_run_is_named_and_leaves_nothing() {
    let home = Home::new();
    let reason = home.fails_with(127, &["record", "--", "/no/such/program", "x"]);
    assert!(
        reason.contains("cannot run '/no/such/program': No such file or directory"),
        "{reason}"
    );
    let text = home.path.join("text");
    std::fs::write(&text, "").unwrap();
    let reason = home.fails_with(126, &["record", "--", text.to_str().unwrap()]);
    assert!(reason.contains("Permission denied"), "{reason}");
    let reason = home.fails_with(127, &["record", "--", "no-such-program"]);
    assert!(
        reason.contains("cannot run 'no-such-program': it is in no folder of PATH"),
        "{reason}"
    );
    assert!(home.sessions().is_empty());
}

#[test]
fn a_command_that_cannot_be_run_leaves_a_named_folder_as_it_was() {
    let home = Home::new();
    let output = home.path.join("out");
    let out = output.to_str().unwrap();
    // Seen before anything is made, and seen when it is run: what is to interpret it is not there.
    let script = home.path.join("script");
    std::fs::write(&script, "#!/no/such/shell\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
    for (code, command) in [(127, "no-such-program"), (126, script.to_str().unwrap())] {
        let reason = home.fails_with(code, &["record", "-o", out, "--", command]);
        assert!(
            reason.contains(&format!("cannot run '{command}'")),
            "{reason}"
        );
        assert!(!output.exists(), "{command}");
    }
    home.ok(&["record", "-o", out, "--", "true"]);
    let manifest = || std::fs::read(output.join("session.json")).unwrap();
    let before = manifest();
    home.fails_with(127, &["record", "-o", out, "--", "no-such-program"]);
    assert!(manifest() == before);
    home.ok(&["report", "-i", out]);
}

#[test]
fn record_keeps_a_command_that_ends_at_once() {
    let home = Home::new();
    home.ok(&["record", "--", "true"]);
    let sessions = home.sessions();
    assert_eq!(
        (sessions.len(), &sessions[0]["state"]),
        (1, &"complete".into())
    );
    assert_eq!(sessions[0]["target"], "true");
}

#[test]
fn record_ends_as_its_command_does_and_says_when_that_failed() {
    let home = Home::new();
    for (script, code, said) in [
        ("exit 0", 0, None),
        ("exit 7", 7, Some("the command failed: exit status: 7")),
        ("kill -ABRT $$", 134, Some("the command failed: signal: 6")),
    ] {
        let output = home.run(&["record", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.contains("the command failed"), said.is_some());
        assert!(stderr.contains(said.unwrap_or_default()), "{stderr}");
    }
    assert_eq!(home.sessions().len(), 3, "what was sampled is kept");
}

#[test]
fn record_succeeds_when_it_ends_its_command_itself() {
    let home = Home::new();
    home.ok(&["record", "--duration", "1", "--", "sleep", "1000"]);
}

#[test]
fn record_succeeds_when_a_signal_ends_it() {
    let home = Home::new();
    let output = home.path.join("out");
    let words = [
        "record",
        "-o",
        output.to_str().unwrap(),
        "--",
        "sleep",
        "1000",
    ];
    let mut record = home.command(&words).spawn().unwrap();
    wait_until("the session has begun", || {
        output.join("session.json").exists()
    });
    kill(record.id(), libc::SIGINT);
    assert!(record.wait().unwrap().success());
}

#[test]
fn record_samples_its_command_and_nothing_else() {
    let home = Home::new();
    let _other = App::run("org.example.other");
    let output = home.path.join("out");
    home.ok(&[
        "record",
        "-o",
        output.to_str().unwrap(),
        "--",
        program().to_str().unwrap(),
        "300000000",
    ]);
    let (pids, count) = sampled(&output);
    assert!(pids.len() == 1 && count > 0, "{pids:?} {count}");
}

#[test]
fn bad_usage_is_exit_code_2() {
    let home = Home::new();
    for words in [
        &[][..],
        &["no-such-verb"],
        &["start"],
        &["start", "--app", ""],
        &["start", "--app", "a", "--pid", "1"],
        &["start", "--app", "a", "-F", "0"],
        &["start", "--app", "a", "-F", "1", "-c", "1"],
        &["record"],
        &["record", "--all", "--", "true"],
        &["stop", "a", "b"],
    ] {
        assert_eq!(home.run(words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn without_a_daemon_everything_says_so_and_starts_none() {
    let home = Home::new();
    assert_eq!(home.status()["daemon"], serde_json::Value::Null);
    assert_eq!(home.ok(&["status"]), "no session runs, no daemon either\n");
    assert!(home.fails(&["stop"]).contains("no session runs"));
    assert!(
        home.ok(&["sessions"])
            .starts_with("nothing has been recorded in ")
    );
    assert!(!home.path.join("run").exists(), "asking leaves no trace");
}

#[test]
fn events_and_doctor_agree_on_what_can_be_sampled() {
    let home = Home::new();
    let events = home.json(&["events", "--json"]);
    let doctor = home.json(&["doctor", "--json"]);
    assert_eq!(events["default"], doctor["plan"]["event"]);
    let of = |name: &str| {
        events["events"]
            .as_array()
            .unwrap()
            .iter()
            .find(|event| event["event"] == name)
            .cloned()
            .unwrap()
    };
    assert_eq!(of("cpu-clock")["samples"], true);
    assert!(of("cpu-clock")["count"].as_u64().unwrap() > 0);
    assert_eq!(
        of("cycles")["samples"] == true,
        doctor["plan"]["event"] == "cycles"
    );
    let source = if is_root() { "bpf" } else { "perf" };
    assert_eq!(doctor["plan"]["source"], source, "{doctor}");
    for (words, heading) in [
        (["doctor"], "What varid will use"),
        (["events"], "cpu-clock"),
    ] {
        assert!(home.ok(&words).contains(heading));
    }
}

#[test]
fn doctor_finds_the_vm_that_is_installed() {
    let library = "/usr/lib/x86_64-linux-gnu/android/libart.so.0";
    if !Path::new(library).exists() {
        println!("skipped: doctor finds the VM: no {library} here");
        return;
    }
    let doctor = Home::new().json(&["doctor", "--json"]);
    let vm = doctor["vms"]
        .as_array()
        .unwrap()
        .iter()
        .find(|vm| vm["build_id"].is_string())
        .cloned()
        .unwrap();
    assert_eq!(vm["build_id"].as_str().unwrap().len(), 40, "{vm}");
}
