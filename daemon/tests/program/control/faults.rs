//! The daemon withstands its own death, other users, and malicious clients.

use super::support::*;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_killed_daemons_session_is_readable_and_the_next_daemon_takes_over() {
    let home = Home::new();
    let app = App::run("org.example.survivor");
    let said = home.ok(&["start", "--pid", &app.pid().to_string()]);
    home.wait_for_samples(&format!("pid {}", app.pid()));
    let first = home.daemon_pid().unwrap();
    kill(first, libc::SIGKILL);
    // A daemon that dies during the request gives no answer.
    wait_until("the daemon is gone", || {
        home.run(&["status", "--json"])
            .stdout
            .starts_with(b"{\n  \"version\": 1,\n  \"daemon\": null")
    });
    assert!(home.socket().exists(), "a killed daemon leaves its socket");

    let interrupted = &home.sessions()[0];
    assert_eq!(interrupted["state"], "interrupted");
    let (_, count) = sampled(&folder(&said));
    assert!(count > 0, "what it had written is there");
    assert_eq!(interrupted["samples"].as_u64(), Some(count as u64));
    let reason = home.fails(&["stop"]);
    assert!(reason.contains("no session runs"), "{reason}");

    let again = home.ok(&["start", "--pid", &app.pid().to_string()]);
    assert_ne!(home.daemon_pid(), Some(first));
    home.wait_for_samples(&format!("pid {}", app.pid()));
    let sessions = home.sessions();
    assert_eq!(
        [&sessions[0]["state"], &sessions[1]["state"]],
        ["interrupted", "recording"]
    );
    home.ok(&["stop"]);
    assert_ne!(folder(&again), folder(&said));
    assert_eq!(home.sessions()[1]["state"], "complete");
}

#[test]
fn several_starts_at_once_bring_up_one_daemon() {
    let home = Home::new();
    let app = App::run("org.example.popular");
    let pid = app.pid().to_string();
    let starts: Vec<_> = (0..6)
        .map(|_| {
            home.command(&["start", "--pid", &pid, "--ring-pages", "64"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for start in starts {
        let output = start.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(home.status()["sessions"].as_array().unwrap().len(), 6);
    assert_eq!(home.ok(&["stop"]).lines().count(), 6);
    assert_eq!(home.sessions().len(), 6);
}

#[test]
fn a_start_while_the_daemon_ends_gets_the_next_one() {
    let home = Home::new();
    let app = App::run("org.example.between");
    let pid = app.pid().to_string();
    for _ in 0..5 {
        home.ok(&["start", "--pid", &pid]);
        let daemon = home.daemon_pid().unwrap();
        // It completes its session and ends while the next start is in progress.
        kill(daemon, libc::SIGTERM);
        home.ok(&["start", "--pid", &pid]);
        // Either daemon may have taken it; both keep it.
        home.run(&["stop"]);
    }
    wait_until("all are complete", || {
        let sessions = home.sessions();
        sessions.len() == 10
            && sessions
                .iter()
                .all(|session| session["state"] == "complete")
    });
}

#[test]
fn the_daemon_closes_descriptors_inherited_from_the_shell() {
    let home = Home::new();
    let app = App::run("org.example.open");
    let file = home.path.join("open");
    let script = "exec 7>\"$1\"; exec \"$0\" start --ring-pages 16 --pid \"$2\"";
    let status = Command::new("sh")
        .args([
            "-c",
            script,
            VARID,
            file.to_str().unwrap(),
            &app.pid().to_string(),
        ])
        .env("VARID_HOME", &home.path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() && file.exists());
    let daemon = home.daemon_pid().unwrap();
    let open: Vec<_> = std::fs::read_dir(format!("/proc/{daemon}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .collect();
    assert!(open.len() > 2 && !open.contains(&file), "{open:?}");
    home.ok(&["stop"]);
}

#[test]
fn a_path_that_is_not_utf8_is_refused_at_once() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let mut start = home.command(&["start", "--pid", "1", "-o"]);
    let output = start
        .arg(std::ffi::OsStr::from_bytes(b"/x\xff"))
        .output()
        .unwrap();
    assert!(one_line_of_failure(1, &output).contains("UTF-8"));
}

#[test]
fn what_cannot_be_started_is_said_in_one_line_and_leaves_nothing() {
    let home = Home::new();
    let nobody = nix::unistd::Pid::this().as_raw() as u32;
    assert!(Path::new(&format!("/proc/{nobody}")).exists());
    let reason = home.fails(&["start", "--pid", "4194304"]);
    assert!(reason.contains("no process has the id 4194304"), "{reason}");
    let reason = home.fails(&["start", "--pid", &nobody.to_string(), "-e", "no-such"]);
    assert!(reason.contains("unknown event 'no-such'"), "{reason}");
    std::fs::write(home.path.join("file"), "").unwrap();
    let reason = home.fails(&[
        "start",
        "--pid",
        &nobody.to_string(),
        "-o",
        home.path.join("file").to_str().unwrap(),
    ]);
    assert!(reason.contains("file"), "{reason}");
    assert!(
        home.sessions().is_empty(),
        "a session that never began is not listed"
    );
    assert!(home.status()["sessions"].as_array().unwrap().is_empty());
}

/// Sends bytes and reads the reply, as far as there is one.
fn say(home: &Home, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    // The daemon may stop reading before everything is sent.
    let _ = stream.write_all(bytes);
    let mut reply = String::new();
    let _ = stream.read_to_string(&mut reply);
    reply
}

#[test]
fn hostile_clients_are_refused_and_do_not_block_others() {
    let home = Home::new();
    let app = App::run("org.example.calm");
    home.ok(&["start", "--pid", &app.pid().to_string()]);
    // Clients that send nothing, or half a word, and stay connected.
    let silent: Vec<_> = (0..12)
        .map(|_| UnixStream::connect(home.socket()).unwrap())
        .collect();
    let half: Vec<_> = (0..12)
        .map(|_| {
            let mut stream = UnixStream::connect(home.socket()).unwrap();
            stream.write_all(b"{\"version\":5,").unwrap();
            stream
        })
        .collect();
    assert!(say(&home, b"{\"version\":5,\"request\":\"status\"}\n").contains("\"status\""));
    for bad in [
        &b"\n"[..],
        b"\xff\xfe\0\n",
        b"{}\n",
        b"{\"version\":5}\n",
        b"{\"version\":5,\"request\":\"start\"}\n",
        b"{\"version\":5,\"request\":\"start\",\"recording\":{\"target\":\"all\",\"more\":1}}\n",
    ] {
        let reply = say(&home, bad);
        let refused = reply.contains("\"refused\"") && reply.ends_with('\n');
        assert!(
            refused && !reply.contains("speaks version"),
            "{bad:?}: {reply}"
        );
    }
    for version in [4, 99] {
        let line = format!("{{\"version\":{version},\"request\":\"status\"}}\n");
        let reply = say(&home, line.as_bytes());
        let refused = format!("it speaks version {version} of the control protocol");
        assert!(reply.contains(&refused), "{reply}");
    }
    let reply = say(&home, &vec![b'['; 60_000]);
    assert!(reply.is_empty() || reply.contains("refused"), "{reply}");
    // Longer than any request: the daemon must not buffer it.
    say(&home, &vec![b'x'; 1 << 20]);

    home.wait_for_samples(&format!("pid {}", app.pid()));
    home.ok(&["stop"]);
    drop((silent, half));
}

/// A request that the command line would not accept.
#[test]
fn a_hand_written_request_is_held_to_the_same_rules() {
    let home = Home::new();
    let app = App::run("org.example.rules");
    home.ok(&["start", "--pid", &app.pid().to_string()]);
    let plain = format!(
        "{{\"version\":5,\"request\":\"start\",\"recording\":{{\"target\":{{\"pids\":[{}]}},\
         \"settings\":{{\"rate\":null,\"tactic\":null}},\"sampling\":{{\"ring_pages\":64}},\"output\":{{\"folder\":null}}}}}}\n",
        app.pid()
    );
    let reply = say(&home, plain.as_bytes());
    assert!(
        reply.contains("\"started\""),
        "as it is, it is granted: {reply}"
    );
    for (from, to, reason) in [
        ("\"rate\":null", "\"rate\":{\"frequency\":0}", "frequency 0"),
        ("\"ring_pages\":64", "\"ring_pages\":99999999999", "pages"),
        ("\"folder\":null", "\"folder\":\"relative\"", "relative"),
        (
            "\"rate\":null",
            "\"rate\":{\"frequency\":1,\"period\":1}",
            "the daemon did not understand",
        ),
        (
            "\"tactic\":null",
            "\"tactic\":null,\"unknown\":1",
            "unknown",
        ),
        // If duplicate keys were accepted, the last one would take effect.
        (
            "\"ring_pages\":64",
            "\"ring_pages\":64,\"ring_pages\":32",
            "duplicate",
        ),
    ] {
        let changed = plain.replace(from, to);
        assert_ne!(changed, plain);
        let reply = say(&home, changed.as_bytes());
        assert!(
            reply.contains("\"refused\"") && reply.contains(reason),
            "{changed}: {reply}"
        );
    }
    assert_eq!(home.status()["sessions"].as_array().unwrap().len(), 2);
    home.ok(&["stop"]);
}

#[test]
fn a_daemon_that_takes_long_to_end_is_waited_for() {
    let home = Home::new();
    let app = App::run("org.example.successor");
    let pid = app.pid().to_string();
    home.ok(&["start", "--pid", &pid]);
    // It holds the lock and does not listen, like a daemon that writes the end of a long session.
    let ending = home.daemon_pid().unwrap();
    home.ok(&["stop"]);
    kill(ending, libc::SIGSTOP);
    std::fs::remove_file(home.socket()).unwrap();
    let mut start = home.command(&["start", "--pid", &pid]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert!(start.try_wait().unwrap().is_none(), "it waits");
    kill(ending, libc::SIGKILL);
    assert!(start.wait().unwrap().success());
    assert_ne!(home.daemon_pid(), Some(ending));
    home.ok(&["stop"]);
}

#[test]
fn another_user_is_refused_by_the_folder_and_by_the_daemon() {
    if !is_root() {
        println!("skipped: another user is refused: only root can become another user");
        return;
    }
    let home = Home::new();
    let app = App::run("org.example.private");
    home.ok(&["start", "--pid", &app.pid().to_string()]);
    let user = User::new(&home);
    let as_nobody = |words: &[&str]| {
        one_line_of_failure(1, &user.in_place(&home.path, words).output().unwrap())
    };
    let run = home.path.join("run");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&run), mode(&home.socket())), (0o700, 0o600));

    open_to(&home.path, 0o755);
    for words in [
        &["status"][..],
        &["stop"],
        &["start", "--pid", "1"],
        &["daemon"],
    ] {
        let reason = as_nobody(words);
        assert!(
            reason.contains("another user's") || reason.contains("belongs to user 0"),
            "{words:?}: {reason}"
        );
    }
    // Even if the folder and the socket are accessible, the daemon checks the peer's user.
    open_to(&run, 0o755);
    open_to(&home.socket(), 0o666);
    for words in [&["status"][..], &["stop"]] {
        let reason = as_nobody(words);
        assert!(
            reason.contains("user 65534 may not use the daemon of user 0"),
            "{words:?}: {reason}"
        );
    }
    home.wait_for_samples(&format!("pid {}", app.pid()));
    home.ok(&["stop"]);
}
