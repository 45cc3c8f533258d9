//! Checks the contents of views against the recording, and their output.

mod approximate;
mod dim;
mod events;
mod filters;
mod finding;
mod java;
mod measures;
mod precise;
mod run_time_code;
pub mod schema;
mod services;
mod tree;
mod widths;
mod without_samples;

use std::collections::HashMap;

use crate::common::{DRAW, Fixture, JNI, RUN};
use varid_model::{Address, Layer, MonotonicNs, Pid};
use varid_recording::{ConfigurationChange, Membership, TargetKind};
use varid_report::{
    CodeFilter, GroupBy, NamePattern, Options, OutputFormat, Pattern, PercentOf, ReportTable,
    TaskFilter, TextLimits, View,
};

fn by(by: GroupBy) -> View {
    View {
        table: ReportTable::by(by),
        ..View::default()
    }
}

fn callgraph() -> View {
    View {
        table: ReportTable::CALLGRAPH,
        ..View::default()
    }
}

fn json(fixture: &Fixture, options: &Options, view: &View) -> serde_json::Value {
    serde_json::from_str(&fixture.render(options, view, OutputFormat::Json)).unwrap()
}

/// Own and total values of a report's rows by name.
fn shares(report: &serde_json::Value, rows: &str, name: &str) -> HashMap<String, (u64, u64)> {
    let rows = report[rows].as_array().unwrap().iter();
    rows.map(|row| {
        let name = row[name].as_str().unwrap().to_owned();
        (
            name,
            (
                row["self"].as_u64().unwrap(),
                row["total"].as_u64().unwrap(),
            ),
        )
    })
    .collect()
}

#[test]
fn overview_in_text() {
    let fixture = Fixture::full();
    insta::assert_snapshot!(fixture.render(
        &Options::default(),
        &View::default(),
        OutputFormat::Text
    ));
}

#[test]
fn overview_on_a_terminal_of_eighty_columns() {
    let fixture = Fixture::full();
    let view = View {
        text: TextLimits {
            width: Some(80),
            fold_below: 20.0,
            missing: Some(1),
            colour: false,
        },
        ..View::default()
    };
    let text = fixture.render(&Options::default(), &view, OutputFormat::Text);
    insta::assert_snapshot!(text);
    // Folded rows are neither lost nor counted twice.
    let whole = json(&fixture, &Options::default(), &View::default());
    let all: u64 = whole["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["self"].as_u64().unwrap())
        .sum();
    let symbols = text.rsplit_once("symbol name\n").unwrap().1;
    let symbols = symbols.split("\n\n").next().unwrap();
    let shown: u64 = symbols
        .lines()
        .map(|line| match line.strip_prefix('(') {
            Some(folded) => folded
                .split([' ', ':'])
                .rev()
                .skip_while(|word| *word != "samples,")
                .nth(1)
                .unwrap(),
            None => line.split_whitespace().next().unwrap(),
        })
        .map(|number| number.parse::<u64>().unwrap())
        .sum();
    assert_eq!(shown, all, "{text}");
}

#[test]
fn what_takes_much_is_coloured_and_all_else_is_as_it_was() {
    let fixture = Fixture::full();
    let rendered = |colour| {
        let view = View {
            text: TextLimits {
                width: Some(80),
                colour,
                ..TextLimits::default()
            },
            ..View::default()
        };
        fixture.render(&Options::default(), &view, OutputFormat::Text)
    };
    let (plain, coloured) = (rendered(false), rendered(true));
    assert!(!plain.contains('\u{1b}'));
    let row = coloured
        .lines()
        .find(|line| line.contains("Balls.draw"))
        .unwrap();
    assert!(row.contains("\u{1b}[31m43.00\u{1b}[0m"), "{row}");
    assert!(coloured.contains("\u{1b}[32m2.00\u{1b}[0m"), "{coloured}");
    let codes = ["31", "32", "1", "0"].map(|code| format!("\u{1b}[{code}m"));
    let without = codes
        .iter()
        .fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(without, plain);
}

#[test]
fn callgraph_on_a_terminal_of_seventy_columns() {
    let fixture = Fixture::full();
    let view = View {
        text: TextLimits {
            width: Some(70),
            ..TextLimits::default()
        },
        min_percent: 5.0,
        ..callgraph()
    };
    insta::assert_snapshot!(fixture.render(&Options::default(), &view, OutputFormat::Text));
}

#[test]
fn a_selection_that_matches_nothing_says_so() {
    let fixture = Fixture::full();
    let options = Options {
        tasks: TaskFilter {
            pid: Some(Pid::new(4_000_000)),
            ..TaskFilter::default()
        },
        ..Options::default()
    };
    let text = fixture.render(&options, &View::default(), OutputFormat::Text);
    assert!(text.contains("no sample matches --pid 4000000: "), "{text}");
    let options = Options {
        time: Some("60..70".parse().unwrap()),
        ..Options::default()
    };
    let text = fixture.render(&options, &View::default(), OutputFormat::Text);
    assert!(
        text.contains("no sample matches --time 60..70: the recording lasts 2.500 s, and "),
        "{text}"
    );
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    assert!(!text.contains("no sample matches"), "{text}");
}

#[test]
fn callgraph_in_text() {
    let fixture = Fixture::full();
    let view = View {
        min_percent: 5.0,
        ..callgraph()
    };
    insta::assert_snapshot!(fixture.render(&Options::default(), &view, OutputFormat::Text));
}

#[test]
fn threads_of_a_selection_in_text() {
    let fixture = Fixture::full();
    let options = Options {
        tasks: TaskFilter {
            pid: Some(Pid::new(100)),
            thread: Some(Pattern::new("B*")),
            ..TaskFilter::default()
        },
        ..Options::default()
    };
    insta::assert_snapshot!(fixture.render(&options, &by(GroupBy::Thread), OutputFormat::Text));
}

#[test]
fn callgraph_of_one_method_in_json() {
    let fixture = Fixture::full();
    let view = View {
        code: CodeFilter {
            symbol: Some(NamePattern::new(r"\.fib\(int\)$").unwrap()),
            ..CodeFilter::default()
        },
        ..callgraph()
    };
    insta::assert_snapshot!(fixture.render(&Options::default(), &view, OutputFormat::Json));
}

#[test]
fn symbols_in_csv() {
    let fixture = Fixture::full();
    insta::assert_snapshot!(fixture.render(
        &Options::default(),
        &by(GroupBy::Symbol),
        OutputFormat::Csv
    ));
}

#[test]
fn layers_and_symbols_add_up_to_the_samples() {
    let fixture = Fixture::full();
    let report = json(&fixture, &Options::default(), &View::default());
    assert_eq!(report["samples"], 100);
    let layers = shares(&report, "layers", "layer");
    assert_eq!(layers["app"], (64, 99));
    assert_eq!(layers["framework"], (10, 10));
    assert_eq!(layers["vm"], (5, 5));
    // Its total has the kernel's samples under libskia and those above [native].
    assert_eq!(layers["native"], (11, 26));
    assert_eq!(layers["kernel"], (10, 10));
    let symbols = shares(&report, "rows", "symbol");
    assert_eq!(symbols.values().map(|share| share.0).sum::<u64>(), 100);
    assert_eq!(symbols["org.example.Balls.draw"], (43, 71));
    assert_eq!(symbols["org.example.Balls.run"], (1, 96));
    assert_eq!(symbols["java.lang.Math.sqrt"], (10, 10));
    assert_eq!(symbols["org.example.Balls.nativeBlit"], (0, 18));
    assert_eq!(symbols["sys_read"], (10, 10));
    assert_eq!(symbols["entry"], (0, 10));
    assert_eq!(symbols["[unknown]+0x?"], (1, 1));
    assert_eq!(symbols["libskia.so+0x?"], (8, 18));
    assert_eq!(
        symbols["art::Thread::Attach(char const*, bool, _jobject*, bool)"],
        (5, 5)
    );
}

#[test]
fn recursion_counts_a_sample_once() {
    let fixture = Fixture::full();
    let report = json(&fixture, &Options::default(), &callgraph());
    let fib = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["symbol"] == "org.example.Balls.fib(int)")
        .unwrap();
    assert_eq!((&fib["self"], &fib["total"]), (&20.into(), &20.into()));
    let callers = fib["callers"].as_array().unwrap();
    let names: Vec<_> = callers.iter().map(|call| &call["symbol"]).collect();
    assert_eq!(
        names,
        ["org.example.Balls.fib(int)", "org.example.Balls.run"]
    );
    assert!(
        callers
            .iter()
            .all(|call| call["samples"] == 20 && call["percent"] == 100.0)
    );
}

#[test]
fn a_file_of_another_build_is_named_and_not_believed() {
    let fixture = Fixture::full();
    let report = json(&fixture, &Options::default(), &View::default());
    let symbols = shares(&report, "rows", "symbol");
    assert_eq!(symbols["libfoo.so+0x?"], (2, 2));
    let missing = report["missing"].as_array().unwrap();
    let told: Vec<_> = missing
        .iter()
        .map(|missing| (&missing["why"], &missing["samples"], &missing["build_id"]))
        .collect();
    let why = |text: &str| serde_json::Value::from(text);
    let build = format!(
        "DIR/libfoo.so has build-id {}, the recorded file had {}",
        "dd".repeat(20),
        "ee".repeat(20)
    );
    assert_eq!(
        told,
        [
            (
                &why("No such file or directory (os error 2)"),
                &18.into(),
                &serde_json::Value::Null
            ),
            (&why(&build), &2.into(), &why(&"ee".repeat(20))),
        ]
    );
}

#[test]
fn lost_and_unattributed_samples_are_in_every_format_that_has_room() {
    let fixture = Fixture::full();
    let report = json(&fixture, &Options::default(), &by(GroupBy::Layer));
    assert_eq!(
        (&report["lost"], &report["malformed"], &report["throttled"]),
        (&7.into(), &3.into(), &2.into())
    );
    assert_eq!(report["attributed"], 96);
    let unattributed = serde_json::json!({"torn-frames": 3, "unknown-mapping": 1});
    assert_eq!(report["unattributed"], unattributed);
    assert_eq!(
        (&report["event"], &report["frequency"]),
        (&"cpu-clock".into(), &997.into())
    );
    assert_eq!(report["source"], "bpf");
}

#[test]
fn filters_of_samples_change_what_percentages_are_of_and_filters_of_rows_do_not() {
    let fixture = Fixture::full();
    let other = Options {
        tasks: TaskFilter {
            pid: Some(Pid::new(200)),
            ..TaskFilter::default()
        },
        ..Options::default()
    };
    let report = json(&fixture, &other, &View::default());
    assert_eq!(
        (&report["samples"], &report["recorded"]),
        (&1.into(), &100.into())
    );
    assert_eq!(report["rows"][0]["self_percent"], 100.0);
    assert_eq!(report["selected_by"], "--pid 200");

    let kernel = View {
        code: CodeFilter {
            layer: Some(Layer::Kernel),
            ..CodeFilter::default()
        },
        ..View::default()
    };
    let report = json(&fixture, &Options::default(), &kernel);
    assert_eq!(report["samples"], 100);
    assert_eq!(report["rows"].as_array().unwrap().len(), 2);
    assert_eq!(report["rows"][0]["self_percent"], 10.0);
    assert_eq!(report["layers"].as_array().unwrap().len(), 5);

    let two = View {
        limit: Some(2),
        ..View::default()
    };
    let report = json(&fixture, &Options::default(), &two);
    assert_eq!(report["rows"].as_array().unwrap().len(), 2);
    assert_eq!(report["rows_hidden"], 12);
}

#[test]
fn processes_and_threads_have_their_own_samples() {
    let fixture = Fixture::full();
    let threads = json(&fixture, &Options::default(), &by(GroupBy::Thread));
    let expected = HashMap::from([
        ("balls".to_owned(), (94, 94)),
        ("Binder:1".to_owned(), (5, 5)),
        ("other".to_owned(), (1, 1)),
    ]);
    assert_eq!(shares(&threads, "rows", "thread"), expected);
    let processes = json(&fixture, &Options::default(), &by(GroupBy::Process));
    assert_eq!(shares(&processes, "rows", "process")["balls"], (99, 99));
}

#[test]
fn csv_has_the_rows_of_json() {
    let fixture = Fixture::full();
    let view = by(GroupBy::Symbol);
    let csv = fixture.render(&Options::default(), &view, OutputFormat::Csv);
    let report = json(&fixture, &Options::default(), &view);
    let rows = report["rows"].as_array().unwrap();
    let mut lines = csv.lines().map(fields);
    let header = lines.next().unwrap();
    assert_eq!(lines.clone().count(), rows.len());
    for (line, row) in lines.zip(rows) {
        assert_eq!(line.len(), header.len());
        for (name, field) in header.iter().zip(&line) {
            match &row[name] {
                serde_json::Value::String(text) => assert_eq!(field, text),
                number => {
                    let (field, number) = (field.parse::<f64>().unwrap(), number.as_f64().unwrap());
                    assert!((field - number).abs() < 1e-6, "{name} of {line:?}");
                }
            }
        }
    }
    // A name with commas is one field.
    assert!(csv.contains("\"art::Thread::Attach(char const*, bool, _jobject*, bool)\""));
    let pairs = fixture.render(&Options::default(), &callgraph(), OutputFormat::Csv);
    assert!(pairs.lines().all(|line| fields(line).len() == 10));
    let run = "app,balls.apk!classes.dex,org.example.Balls.run";
    let draw = "app,balls.apk!classes.dex,org.example.Balls.draw";
    assert!(
        pairs.contains(&format!("{draw},caller,{run},68,")),
        "{pairs}"
    );
    assert!(
        pairs.contains(&format!("{run},callee,{draw},68,")),
        "{pairs}"
    );
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    assert!(!quoted, "{line}");
    fields
}

#[test]
fn an_event_that_took_turns_says_so_and_what_all_of_it_would_have_been() {
    let mut fixture = Fixture::new();
    fixture.samples(30, (100, 100), &[RUN]);
    let event = &mut fixture.writer.manifest_mut().events.first;
    (event.enabled_ns, event.running_ns) = (2_000_000, 1_200_000);
    fixture.writer.finish().unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    assert_eq!(report["period_sum"], 30_000_000);
    assert_eq!(report["running_percent"], 60.0);
    assert_eq!(report["period_estimate"], 50_000_000);
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    let said = "It had a counter for 60.00 % of the time (multiplexed): about 50000000 ";
    assert!(text.contains(said), "{text}");
}

#[test]
fn an_event_that_never_had_a_counter_is_not_estimated() {
    let mut fixture = Fixture::new();
    let event = &mut fixture.writer.manifest_mut().events.first;
    (event.enabled_ns, event.running_ns) = (2_000_000, 0);
    fixture.writer.finish().unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    assert_eq!(report["running_percent"], 0.0);
    assert_eq!(report.get("period_estimate"), None);
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    assert!(
        text.contains("It had a counter for 0.00 % of the time (multiplexed)\n"),
        "{text}"
    );
}
