//! Exit codes and messages of each verb.

use super::support::*;
use serde_json::Value;
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
        reason.contains("cannot run 'no-such-program': not found in PATH"),
        "{reason}"
    );
    assert!(home.sessions().is_empty());
}

#[test]
fn a_command_that_cannot_be_run_leaves_a_named_folder_as_it_was() {
    let home = Home::new();
    let output = home.path.join("out");
    let out = output.to_str().unwrap();
    // Detected before anything is created, and again at the exec: the interpreter does not exist.
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

/// The kernel asks for more rights for a uprobe, which varid keeps only where it samples one.
#[test]
fn a_uprobe_is_sampled_whether_the_command_line_or_the_configuration_names_it() {
    if !is_root() || !Path::new("/sys/bus/event_source/devices/uprobe").exists() {
        println!("skipped: a uprobe of the configuration: needs root, and a kernel with uprobes");
        return;
    }
    let home = Home::new();
    let program = program().to_str().unwrap();
    let event = format!("uprobe:{program}:main");
    let file = home.path.join("varid.toml");
    std::fs::write(&file, format!("events = [\"{event}\"]\nperiod = 1\n")).unwrap();
    let file = file.to_str().unwrap();
    for options in [["-e", &event, "-c", "1"].as_slice(), &["--config", file]] {
        let output = home.path.join("out");
        let words = [&["record", "-o", output.to_str().unwrap()], options].concat();
        home.ok(&[&words[..], &["--", program, "1"]].concat());
        assert_eq!(sampled(&output).1, 1, "{options:?}");
    }
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
        &["record", "--app", "a", "true"],
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

#[test]
fn a_recording_in_the_foreground_is_listed_and_stopped_as_the_daemons_are() {
    let home = Home::new();
    let output = home.path.join("out");
    let named = output.to_str().unwrap();
    let app = App::run("org.example.app");
    home.ok(&["start", "--pid", &app.pid().to_string()]);
    for which in [&["stop", named][..], &["stop", "sleep 1000"], &["stop"]] {
        let words = ["record", "-o", named, "sleep", "1000"];
        let mut record = home.command(&words).spawn().unwrap();
        wait_until("it is listed", || home.session("sleep 1000").is_some());
        let session = home.session("sleep 1000").unwrap();
        assert_eq!(session["recorder"], record.id());
        assert_eq!(
            (&session["folder"], &session["processes"]),
            (&named.into(), &Value::Null)
        );
        let shown = home.ok(&["status"]);
        let told = format!("{named}: by 'varid record', process {}\n", record.id());
        assert!(shown.contains(&told), "{shown}");
        let listed = home.sessions();
        // The daemon's session, and this one once, however often it is recorded.
        assert_eq!(listed.len(), 2, "{listed:?}");
        let state = |listed: &[Value]| {
            let one = listed.iter().find(|session| session["folder"] == named);
            one.unwrap()["state"].clone()
        };
        assert_eq!(state(&listed), "recording");
        let said = home.ok(which);
        assert!(said.contains(&format!("samples in {named}\n")), "{said}");
        assert_eq!(said.lines().count(), if which.len() == 1 { 2 } else { 1 });
        assert!(record.wait().unwrap().success());
        assert_eq!(state(&home.sessions()), "complete");
    }
    assert!(home.fails(&["stop"]).contains("no session runs"));
    std::fs::remove_dir_all(&output).unwrap();
    assert_eq!(home.sessions().len(), 1);
}

#[test]
fn quiet_says_only_what_went_wrong() {
    let home = Home::new();
    let busy = [program().to_str().unwrap(), "300000000"];
    let output = home.run(&[&["record", "-q", "-e", "cpu-clock"][..], &busy].concat());
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    // One sample per second for a command that ends at once.
    let output = home.run(&["record", "-q", "-e", "cpu-clock", "-F", "1", "true"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let why = "no sample was taken: what is profiled did not run on a processor, or too briefly";
    assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    let output = home.run(&["record", "--method", "org.example.*", busy[0], busy[1]]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no sample was taken: "), "{said}");
}

#[test]
fn what_a_user_may_not_sample_is_refused_with_the_reason() {
    if !is_root() {
        println!("skipped: what a user may not sample: only root can become another user");
        return;
    }
    let home = Home::new();
    let stranger = App::run("org.example.private").pid().to_string();
    let user = User::new(&home);
    let app = App::run("org.example.private");
    let fails = |words: &[&str]| one_line_of_failure(1, &user.command(words).output().unwrap());
    let reason = fails(&["record", "--pid", &app.pid().to_string()]);
    let wanted = format!(
        "process {} belongs to root: only that user and root may profile it",
        app.pid()
    );
    assert!(reason.contains(&wanted), "{reason}");
    let reason = fails(&["record", "--pid", &stranger]);
    assert!(
        reason.contains(&format!("no process has the id {stranger}")),
        "{reason}"
    );
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if paranoid.trim().parse::<i32>().unwrap() < 2 {
        println!("skipped: what a user may not sample: this kernel lets users sample it");
        return;
    }
    let own = user
        .command(&["record", "-e", "cpu-clock:k", "true"])
        .output()
        .unwrap();
    let reason = one_line_of_failure(125, &own);
    assert!(reason.contains("perf_event_paranoid"), "{reason}");
}
