//! Errors of a configuration are found, and reported with their positions.

use super::super::to_toml;
use super::*;
use proptest::prelude::*;

fn any_event(text: &str) -> Result<(), String> {
    match text {
        "nonsense" => Err("nonsense is no event".to_owned()),
        _ => Ok(()),
    }
}

fn problems(text: &str) -> Vec<String> {
    let problems = parse(text, any_event).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

const SAMPLE: &str = include_str!("../../../../docs/varid.toml");

#[test]
fn the_sample_says_everything_that_there_is_and_is_right() {
    let config = parse(SAMPLE, any_event).unwrap();
    assert!(!config.apps.is_empty() && !config.services.is_empty());
    let settings = &config.settings;
    assert!(!settings.methods.is_empty() && !settings.events.is_empty());
    assert!(settings.stack.is_some() && settings.tactic.is_some() && settings.rate.is_some());
    let Limits {
        duration,
        size,
        processes,
    } = settings.limits;
    assert!(duration.is_some() && size.is_some() && processes.is_some());
    assert!(!config.app.is_empty() && !config.service.is_empty());
    assert_eq!(parse(&to_toml(&config), any_event), Ok(config));
}

#[test]
fn nothing_says_nothing() {
    assert_eq!(parse("", any_event), Ok(Config::default()));
    assert_eq!(to_toml(&Config::default()), "");
}

#[test]
fn each_error_is_reported_with_its_position() {
    let text = "apps = [\"org.example\", \"\"]\nmetods = []\n\n[limits]\n  duration = \"9 parsecs\"\n  processes = 0\n";
    assert_eq!(
        problems(text),
        [
            "1:24: an empty name means no process",
            "2:1: a configuration has no key 'metods': did you mean 'methods'?",
            "5:14: ' parsecs' is no unit of time: ms, s, m and h are",
            "6:15: 0 is not from 1 to 1000000",
        ]
    );
    for (text, expected) in [
        (
            "frequency = 997\nperiod = 10\n",
            "2:10: a frequency or a period, not both",
        ),
        ("frequency = -1", "1:13: -1 is not from 1 to 1000000"),
        ("frequency = 0x_", "1:"),
        (
            "all = 1",
            "1:7: true or false is wanted here, not a whole number",
        ),
        (
            "events = [\"cycles\", \"nonsense\"]",
            "1:21: nonsense is no event",
        ),
        (
            "events = \"cycles\"",
            "1:10: a list, [\"…\", \"…\"] is wanted here, not a text",
        ),
        (
            "stack = \"half\"",
            "1:9: 'half' is none of vertical, full, none",
        ),
        (
            "mode = \"luck\"",
            "1:8: 'luck' is none of sample, load-from-dex, count-calls, method-invoke",
        ),
        (
            "mode = \"sample\"\ntactic = \"method-invoke\"",
            "2:10: 'tactic' is another name of 'mode'",
        ),
        (
            "methods = [\"ü\", \"a.B.c(int)\"]",
            "1:17: 'a.B.c(int)' has parameters",
        ),
        (
            "services = [\"vidio\"]",
            "1:13: no service is called 'vidio': system_server, ",
        ),
        (
            "[service.video]\nmethods = [\"a.*\"]",
            "1:1: service 'video' has no processes",
        ),
        (
            "[service.media]\nprocesses = []",
            "2:13: service 'media' has no processes",
        ),
        (
            "[service.x]\nprocess = []",
            "1:1: service 'x' has no processes",
        ),
        (
            "[app.x]\nprocesses = []",
            "2:1: an app has no key 'processes': known are methods",
        ),
        (
            "all = true\napps = [\"a\"]",
            "2:8: all = true records these, too",
        ),
        (
            "[limits]\nsize = \"1 KB\"",
            "2:8: '1 KB' is not from 1 MB to 1000000 GB",
        ),
        (
            "[limits]\nsize = 1.5",
            "2:8: a number, or a text of a number and a unit is wanted",
        ),
        ("apps = 3", "1:8: a list"),
        (
            "limits = 3",
            "1:10: a table is wanted here, not a whole number",
        ),
        ("a = 1\na = 2", "2:1: duplicate key"),
        ("apps = [", "1:"),
    ] {
        let found = problems(text);
        assert!(found[0].starts_with(expected), "{text}: {found:?}");
    }
}

#[test]
fn a_service_of_the_file_may_be_recorded_and_one_that_is_built_in_changed() {
    let config = parse(
        "services = [\"video\", \"media\"]\n[service.video]\nprocesses = [\"system_server\"]\nmethods = [\"android.media.*\"]\n[service.media]\nmethods = [\"!*\"]\n",
        any_event,
    )
    .unwrap();
    assert_eq!(config.services, ["video", "media"]);
    assert_eq!(
        config.processes_of("media"),
        super::super::built_in("media")
    );
    assert_eq!(config.processes_of("video").unwrap().len(), 1);
}

#[test]
fn hostile_depth_and_length_are_refused() {
    assert!(parse(&"[".repeat(100_000), any_event).is_err());
    assert!(parse(&format!("a = {}", "[".repeat(100_000)), any_event).is_err());
    assert!(parse(&"a.".repeat(100_000), any_event).is_err());
    assert!(parse(&format!("{} = 1", "k".repeat(500_000)), any_event).is_err());
    let many = format!("methods = [{}]", "\"a.*\",".repeat(MAX_PATTERNS + 1));
    assert!(problems(&many)[0].contains("are too many"));
    let wrong: String = (0..1000).map(|n| format!("x{n} = 1\n")).collect();
    assert_eq!(problems(&wrong).len(), 50);
}

/// Pieces of configurations in random order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "apps = ",
        "services",
        "[limits]\n",
        "[service.\"é\"]\n",
        "[app.x]\n",
        "methods=[",
        "\"!a.*\"",
        "\"media\"",
        ", ",
        "]\n",
        "\n",
        " = ",
        "duration = \"5m\"\n",
        "size = 256\n",
        "frequency = 99\n",
        "period = 0x10\n",
        "all = true\n",
        "events = [\"cycles:u\"]\n",
        "stack = \"full\"\n",
        "'",
        "\"\"\"",
        "1979-05-27T07:32:00Z",
        "inf",
        "{ a = 1 }",
        "# c\r\n",
        "\u{0}",
        "processes = [\"a\"]\n",
        "[[app]]\n",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn holds(text: &str) -> Result<(), TestCaseError> {
    match parse(text, any_event) {
        Ok(config) => {
            let written = to_toml(&config);
            prop_assert_eq!(parse(&written, any_event), Ok(config), "{}", written);
        }
        Err(problems) => {
            prop_assert!(!problems.is_empty());
            let lines = text.matches('\n').count() + 1;
            for problem in problems {
                prop_assert!((1..=lines).contains(&problem.line) && problem.column > 0);
                prop_assert!(!problem.what.contains('\n'));
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_is_read_is_refused_with_its_place_or_written_as_it_was_meant(text in pieces()) {
        holds(&text)?;
    }

    #[test]
    fn any_text_is(text in "\\PC{0,64}") {
        holds(&text)?;
    }
}

#[test]
fn a_number_outside_its_bounds_is_refused_with_the_bounds() {
    let bounds = [
        (
            "",
            "frequency",
            ["1", "1000000"],
            ["0", "1000001"],
            "from 1 to 1000000",
        ),
        (
            "",
            "period",
            ["1", "4611686018427387904"],
            ["0", "4611686018427387905"],
            "from 1 to 4611686018427387904",
        ),
        (
            "[limits]\n",
            "duration",
            ["\"1ms\"", "\"720h\""],
            ["0", "\"721h\""],
            "from 1ms to 30 days (720h)",
        ),
        (
            "[limits]\n",
            "size",
            ["\"1 MB\"", "\"1000000 GB\""],
            ["999999", "\"1000001 GB\""],
            "from 1 MB to 1000000 GB",
        ),
        (
            "[limits]\n",
            "processes",
            ["1", "1000000"],
            ["0", "1000001"],
            "from 1 to 1000000",
        ),
    ];
    for (table, key, within, beyond, told) in bounds {
        for value in within {
            let text = format!("{table}{key} = {value}");
            assert!(parse(&text, any_event).is_ok(), "{text}");
        }
        for value in beyond {
            let text = format!("{table}{key} = {value}");
            let expected = format!("{value} is not {told}").replace('"', "");
            let found = problems(&text).join("\n").replace('\'', "");
            assert!(found.ends_with(&expected), "{text}: {found}");
        }
    }
}
