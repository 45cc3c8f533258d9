//! `varid config` reports errors with their positions, and prints a configuration that it can read.

use std::process::{Command, Output};

fn config(arguments: &[&str]) -> Output {
    let mut varid = Command::new(env!("CARGO_BIN_EXE_varid"));
    varid.arg("config").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/varid.toml");

#[test]
fn every_error_is_reported_with_line_and_column_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("varid.toml");
    let name = file.to_str().unwrap();
    std::fs::write(
        &file,
        "apps = [\"a\"]\nmetods = []\n[limits]\nduration = \"9 x\"\n",
    )
    .unwrap();
    let output = config(&["check", name]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!(
        "{name}:2:1: a configuration has no key 'metods': did you mean 'methods'?\n{name}:4:12: ' x' is no unit of time: ms, s, m and h are\n"
    );
    assert_eq!(text(&output.stderr), expected);
    for line in [&["show", "--config", name][..], &["check", "/no/such/file"]] {
        let output = config(line);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(text(&output.stderr).lines().count(), 1);
    }
    let output = config(&["check", SAMPLE]);
    assert!(output.status.success());
}

#[test]
fn unavailable_events_are_reported_with_their_position() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("varid.toml");
    let name = file.to_str().unwrap();
    let write = |events: &str| std::fs::write(&file, format!("events = [{events}]\n")).unwrap();
    let check = |options: &[&str]| {
        let output = config(&[&["check"], options, &[name]].concat());
        let lines: Vec<String> = text(&output.stderr).lines().map(str::to_owned).collect();
        (output.status.code(), lines)
    };
    write("\"cpu-clock:u\", \"no_such_pmu/a=1/\", \"no-such-event\"");
    let pmu = "no PMU of this machine is called 'no_such_pmu' (of 'no_such_pmu/a=1/')";
    let event = "unknown event 'no-such-event'. Known here: ";
    for (options, code, note) in [(&[][..], 0, "note: "), (&["--here"], 2, "")] {
        let (found, lines) = check(options);
        assert_eq!((found, lines.len()), (Some(code), 2), "{lines:?}");
        assert!(lines[0].starts_with(&format!("{name}:1:26: {note}{pmu}")));
        assert!(lines[1].starts_with(&format!("{name}:1:46: {note}{event}")));
    }
    // The same as `record` finds for the same configuration.
    let mut record = Command::new(env!("CARGO_BIN_EXE_varid"));
    record.env("VARID_HOME", folder.path());
    let recorded = record.args(["record", "--config", name, "--", "true"]);
    let said = text(&recorded.output().unwrap().stderr);
    assert!(said.contains(pmu), "{said}");
    // An event with a syntax error is an error on any machine.
    write("\"no-such-event\", \"{a\"");
    for options in [&[][..], &["--here"]] {
        let (code, lines) = check(options);
        assert_eq!((code, lines.len()), (Some(2), 1), "{lines:?}");
        assert!(lines[0].starts_with(&format!("{name}:1:28: ")), "{lines:?}");
    }
    write("\"cpu-clock:u\"");
    for options in [&[][..], &["--here"]] {
        assert_eq!(check(options), (Some(0), Vec::new()));
    }
}

#[test]
fn what_is_shown_is_read_as_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let shown_of = |line: &[&str]| {
        let output = config(line);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let save = |shown: &str| {
        let file = folder.path().join("shown.toml");
        std::fs::write(&file, shown).unwrap();
        file.to_str().unwrap().to_owned()
    };
    for line in [
        &["show", "--all"][..],
        &["show", "--config", SAMPLE],
        &[
            "show",
            "--config",
            SAMPLE,
            "--service",
            "video",
            "-c",
            "5000",
            "--method",
            "!a.*",
            "-e",
            "cycles:u",
        ],
        &[
            "show",
            "--app",
            "org.\"é\"",
            "--stack",
            "none",
            "--duration",
            "500ms",
        ],
    ] {
        let shown = shown_of(line);
        for key in ["events = ", "stack = ", "mode = "] {
            assert!(shown.contains(key), "{shown}");
        }
        let file = save(&shown);
        assert!(config(&["check", &file]).status.success(), "{shown}");
        assert_eq!(shown_of(&["show", "--config", &file]), shown);
    }
}

#[test]
fn the_command_line_takes_what_a_file_may_say_and_no_more() {
    let bounds = [
        ("--duration", "1ms", "0"),
        ("--duration", "720h", "721h"),
        ("-F", "1000000", "1000001"),
        ("-c", "4611686018427387904", "4611686018427387905"),
        ("-c", "1", "0"),
    ];
    for (option, good, bad) in bounds {
        let of = |value| config(&["show", "--all", option, value]).status.code();
        assert_eq!((of(good), of(bad)), (Some(0), Some(2)), "{option}");
    }
    let nobody = config(&["show"]);
    let said = text(&nobody.stderr);
    assert!(
        said.starts_with("start would refuse it: nothing to profile: "),
        "{said}"
    );
    assert!(nobody.status.success());
    assert!(config(&["show", "--pid", "1"]).stderr.is_empty());
}
