//! A packed session shows the same on a machine that has only the file.

use crate::control::support::Home;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Makes a session of folded stacks in a home.
fn session(home: &Home) -> String {
    let stacks = home.path.join("stacks.folded");
    fs::write(&stacks, "main;outer;inner 7\nmain;outer 2\n").unwrap();
    let session = home.path.join("s");
    home.ok(&["import", text(&stacks), "-o", text(&session)]);
    text(&session).to_owned()
}

#[test]
fn a_pack_shows_what_its_session_does_in_any_place() {
    let (here, there) = (Home::new(), Home::new());
    let session = session(&here);
    let pack = there.path.join("sent.tar.gz");
    let said = here.run(&["pack", &session, "-o", text(&pack)]);
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("varid report"), "{said}");
    for words in [
        &["report", "--by", "symbol"][..],
        &["report", "--tree"],
        &["export", "-q", "-f", "folded"],
        &["report", "--format", "json"],
    ] {
        // Only JSON contains the session's path.
        let shown = |home: &Home, session: &str| {
            let shown = home.ok(&[words, &["-i", session]].concat());
            let lines = shown.lines().filter(|line| !line.contains("\"session\": "));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            shown(&there, text(&pack)),
            shown(&here, &session),
            "{words:?}"
        );
    }
    let compared = there.ok(&["diff", text(&pack), text(&pack)]);
    assert!(!compared.is_empty());
    // It is unpacked once, and nothing is written beside it.
    let count = |folder: &Path| fs::read_dir(folder).unwrap().count();
    assert_eq!(count(&there.path.join("cache/packs")), 1);
    // Another file with that name is another session.
    fs::write(here.path.join("other"), "main;other 3\n").unwrap();
    let other = here.path.join("o");
    here.ok(&["import", text(&here.path.join("other")), "-o", text(&other)]);
    here.ok(&["pack", "-q", text(&other), "-o", text(&pack)]);
    let shown = there.ok(&["report", "--by", "symbol", text(&pack)]);
    assert!(
        shown.contains("other") && !shown.contains("inner"),
        "{shown}"
    );
}

#[test]
fn what_is_no_whole_pack_is_an_error_and_leaves_nothing() {
    let home = Home::new();
    let session = session(&home);
    let pack = home.path.join("whole.tar.gz");
    home.ok(&["pack", "-q", &session, "-o", text(&pack)]);
    let whole = fs::read(&pack).unwrap();
    let cut = home.path.join("cut.tar.gz");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let why = home.fails(&["report", text(&cut)]);
    assert!(why.contains("damaged"), "{why}");
    let mut gzip = Command::new("gzip")
        .stdin(Stdio::piped())
        .stdout(fs::File::create(home.path.join("text.gz")).unwrap())
        .spawn()
        .unwrap();
    gzip.stdin.take().unwrap().write_all(b"some text").unwrap();
    assert!(gzip.wait().unwrap().success());
    let why = home.fails(&["report", text(&home.path.join("text.gz"))]);
    assert!(
        why.contains("no session that 'varid pack' has written"),
        "{why}"
    );
    assert_eq!(
        fs::read_dir(home.path.join("cache/packs")).unwrap().count(),
        0
    );
}
