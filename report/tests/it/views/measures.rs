//! Checks exact measures in all views, exports and comparisons.

use super::*;
use crate::common::FIB;
use varid_recording::{
    ContextCount, ContextCounter, ContextNode, CounterId, EstimatedMeasure, NodeId, Tactic,
};
use varid_report::{Diff, DiffView, ExportFormat, ExportRequest, Quantity, Side, export};

/// A view of these measures.
pub fn named(measures: &[&str], table: &'static ReportTable) -> View {
    View {
        measures: measures.iter().map(|name| (*name).to_owned()).collect(),
        table,
        ..View::default()
    }
}

/// A context of a fixture: its parent, its method, and its counts.
pub type Context = (Option<u32>, u64, &'static [u64]);

/// A recording with these contexts in a process.
fn counted(counters: &[(&str, &str)], contexts: &[Context]) -> Fixture {
    let mut fixture = Fixture::new();
    // The method with the highest count is not the one with the most samples.
    fixture.samples(90, (100, 100), &[RUN]);
    fixture.samples(10, (100, 100), &[DRAW]);
    add_contexts(&mut fixture, counters, contexts);
    fixture
}

/// Adds these contexts of a process to a recording.
pub fn add_contexts(fixture: &mut Fixture, counters: &[(&str, &str)], contexts: &[Context]) {
    let time = fixture.tick();
    let counters = counters.iter().map(|(name, unit)| ContextCounter {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
    });
    let counters: Vec<_> = counters.collect();
    let mut writer = fixture.writer.create_contexts(&counters).unwrap();
    writer.add_process(Pid::new(100), "a VM").unwrap();
    for (parent, address, values) in contexts {
        let node = ContextNode {
            pid: Pid::new(100),
            tid: None,
            parent: parent.map(NodeId),
            address: Address::new(*address),
            site: None,
            time,
        };
        let node = writer.add_node(&node).unwrap();
        for (counter, value) in (0..).map(CounterId).zip(*values) {
            let count = ContextCount {
                counter,
                place: None,
                value: *value,
            };
            writer.set_count(node, &count).unwrap();
        }
    }
    writer.end_process(Pid::new(100), None).unwrap();
    writer.finish().unwrap();
}

/// A recording with counted calls.
pub fn calls() -> Fixture {
    let counters = [
        ("calls", "calls"),
        ("returns", "calls"),
        ("unwinds", "calls"),
    ];
    let contexts: [Context; 3] = [
        (None, RUN, &[1, 1, 0]),
        (None, DRAW, &[19, 19, 0]),
        (None, FIB, &[180, 180, 0]),
    ];
    let mut fixture = counted(&counters, &contexts);
    fixture.writer.manifest_mut().tactic = Tactic::MethodInvoke;
    fixture.writer.finish().unwrap();
    fixture
}

/// Measures, one of which the report does not know.
pub const TOYS: [(&str, &str); 2] = [("calls", "calls"), ("toys", "bricks")];

/// A tree with [`TOYS`]: `run` calls `draw`, which calls the recursive `fib`.
pub const TOY_TREE: [Context; 4] = [
    (None, RUN, &[1, 5]),
    (Some(0), DRAW, &[10, 20]),
    (Some(1), FIB, &[30, 100]),
    (Some(2), FIB, &[60, 300]),
];

fn toys() -> Fixture {
    let mut fixture = counted(&TOYS, &TOY_TREE);
    fixture.writer.finish().unwrap();
    fixture
}

/// Own and total values of a measure by method.
pub fn values(report: &serde_json::Value, measure: &str) -> Vec<(String, u64, u64)> {
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        let symbol = row["symbol"].as_str().unwrap();
        let name = symbol.trim_start_matches("org.example.Balls.");
        let value = |part: &str| row["measures"][measure][part].as_u64().unwrap();
        (name.to_owned(), value("self"), value("total"))
    })
    .collect()
}

pub fn expected(rows: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    let row = |(name, own, total): &(&str, u64, u64)| ((*name).to_owned(), *own, *total);
    rows.iter().map(row).collect()
}

#[test]
fn calls_are_shown_from_a_share_of_all_of_them_on() {
    let fixture = calls();
    let shown = |min_percent| {
        let view = View {
            min_percent,
            ..named(&["calls"], by(GroupBy::Symbol).table)
        };
        values(&json(&fixture, &Options::default(), &view), "calls")
    };
    let all = expected(&[("fib(int)", 180, 180), ("draw", 19, 19), ("run", 1, 1)]);
    assert_eq!(shown(0.0), all);
    assert_eq!(shown(0.5), all);
    assert_eq!(shown(0.6), all[..2]);
    assert_eq!(shown(10.0), all[..1]);
    assert_eq!(shown(90.1), []);
    // Counting takes time that a profile without it does not have.
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    assert!(text.contains("shares of time are distorted"), "{text}");
}

#[test]
fn a_measure_that_only_a_recording_names_is_in_every_view() {
    let fixture = toys();
    let options = Options::default();
    let view = |table| named(&["toys", "calls"], table);
    let report = json(&fixture, &options, &view(by(GroupBy::Symbol).table));
    assert_eq!(report["version"], 2);
    let measures = serde_json::json!([
        {"name": "toys", "unit": "bricks", "exact": true, "sum": 425},
        {"name": "calls", "unit": "calls", "exact": true, "sum": 101},
    ]);
    assert_eq!(report["measures"], measures);
    let toys = [("fib(int)", 400, 400), ("draw", 20, 420), ("run", 5, 425)];
    assert_eq!(values(&report, "toys"), expected(&toys));
    let calls = [("fib(int)", 90, 90), ("draw", 10, 100), ("run", 1, 101)];
    assert_eq!(values(&report, "calls"), expected(&calls));

    let tree = ReportTable::tree(varid_report::TreeDirection::TopDown);
    let tree = json(&fixture, &options, &view(tree));
    let nodes = [("run", 5, 425), ("draw", 20, 420), ("fib(int)", 400, 400)];
    assert_eq!(values(&tree, "toys"), expected(&nodes));

    let graph = json(&fixture, &options, &view(ReportTable::CALLGRAPH));
    let rows = graph["rows"].as_array().unwrap();
    let draw = rows
        .iter()
        .find(|row| row["symbol"] == "org.example.Balls.draw");
    let callee = &draw.unwrap()["callees"][0];
    assert_eq!(callee["symbol"], "org.example.Balls.fib(int)");
    assert_eq!(callee["measures"]["toys"]["total"], 400);

    let threads = json(&fixture, &options, &view(by(GroupBy::Thread).table));
    assert_eq!(threads["rows"][0]["thread"], "[all threads]");
    assert_eq!(threads["rows"][0]["measures"]["toys"]["self"], 425);
    for table in [
        by(GroupBy::Symbol).table,
        tree_table(),
        ReportTable::CALLGRAPH,
    ] {
        let text = fixture.render(&options, &view(table), OutputFormat::Text);
        assert!(
            text.contains("toys 425 bricks (exact), calls 101 (exact)"),
            "{text}"
        );
        let csv = fixture.render(&options, &view(table), OutputFormat::Csv);
        assert!(csv.lines().next().unwrap().contains("toys"), "{csv}");
    }
}

#[test]
fn a_measure_that_was_computed_from_counts_is_no_exact_one() {
    let mut fixture = counted(&TOYS, &TOY_TREE);
    let estimates = &mut fixture.writer.manifest_mut().estimates;
    estimates.push(EstimatedMeasure {
        measure: "toys".to_owned(),
        target: "jop-2011".to_owned(),
        settings: Vec::new(),
        within: None,
        caches: Vec::new(),
    });
    fixture.writer.finish().unwrap();
    let (options, view) = (Options::default(), named(&["toys", "calls"], tree_table()));
    let text = fixture.render(&options, &view, OutputFormat::Text);
    let expected = "toys 425 bricks (estimated), calls 101 (exact)";
    assert!(text.contains(expected), "{text}");
    let report = json(&fixture, &options, &view);
    let schema = include_str!("../../../schema/report.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    schema::valid(&schema, &schema, &report).unwrap();
    let of = |place: usize, key: &str| report["measures"][place][key].as_bool();
    assert_eq!(
        (of(0, "exact"), of(0, "estimated")),
        (Some(false), Some(true))
    );
    assert_eq!((of(1, "exact"), of(1, "estimated")), (Some(true), None));
}

fn tree_table() -> &'static ReportTable {
    ReportTable::tree(varid_report::TreeDirection::BottomUp)
}

#[test]
fn a_bottom_up_tree_of_a_measure_has_the_keys_of_one_of_samples() {
    let fixture = toys();
    let (options, view) = (Options::default(), named(&["toys"], tree_table()));
    let report = json(&fixture, &options, &view);
    let schema = include_str!("../../../schema/report.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    schema::valid(&schema, &schema, &report).unwrap();
    let rows = report["rows"].as_array().unwrap().iter();
    let found: Vec<_> = rows
        .map(|row| {
            let toys = row["measures"]["toys"].as_object().unwrap();
            let value = |key: &str| toys[key].as_u64().unwrap();
            assert!(!toys.contains_key("self"), "{row}");
            (
                row["depth"].as_u64().unwrap(),
                value("outermost"),
                value("total"),
            )
        })
        .collect();
    // fib, draw and run below it; draw, and run below it; run.
    let nodes = [
        (0, 0, 400),
        (1, 0, 400),
        (2, 400, 400),
        (0, 0, 20),
        (1, 20, 20),
        (0, 5, 5),
    ];
    assert_eq!(found, nodes);
    let csv = fixture.render(&options, &view, OutputFormat::Csv);
    let head = csv.lines().next().unwrap();
    assert!(
        head.contains("toys outermost,toys outermost_percent,toys total"),
        "{head}"
    );
    let text = fixture.render(&options, &view, OutputFormat::Text);
    let head = text
        .lines()
        .find(|line| line.starts_with("total %"))
        .unwrap();
    let words: Vec<_> = head.split_whitespace().collect();
    assert_eq!(
        words[..5],
        ["total", "%", "toys", "layer", "image"],
        "{text}"
    );
    assert!(text.contains("\n94.12    400   "), "{text}");
}

#[test]
fn samples_and_exact_counts_stand_side_by_side() {
    let fixture = toys();
    let view = named(&["samples", "toys"], by(GroupBy::Symbol).table);
    let report = json(&fixture, &Options::default(), &view);
    let samples = [("run", 90, 90), ("draw", 10, 10), ("fib(int)", 0, 0)];
    assert_eq!(values(&report, "samples"), expected(&samples));
    // The measure of samples alone equals the default, as shares of samples.
    let alone = named(&["samples"], ReportTable::OVERVIEW);
    let usual = View {
        percent_of: PercentOf::Samples,
        ..View::default()
    };
    let render = |view: &View| fixture.render(&Options::default(), view, OutputFormat::Json);
    let alone = render(&alone);
    assert_eq!(alone, render(&usual));
    assert!(alone.contains("\"version\": 1"), "{alone}");
}

#[test]
fn what_a_session_did_not_count_is_refused_with_what_it_has() {
    let fixture = Fixture::full();
    let refused = |measures: &[&str]| {
        let view = named(measures, ReportTable::OVERVIEW);
        let mut out = Vec::new();
        let rendered = varid_report::render(
            &fixture.profile(&Options::default()),
            &view,
            OutputFormat::Text,
            &mut out,
        );
        rendered.unwrap_err().to_string()
    };
    let error = refused(&["calls"]);
    assert!(
        error.contains("no measure 'calls': it has samples, period; "),
        "{error}"
    );
    assert!(error.contains("--mode count-calls"), "{error}");
    let error = refused(&["samples"; 5]);
    assert!(error.starts_with("5 measures are too many"), "{error}");
}

fn exported(fixture: &Fixture, format: &str, measures: &[&str]) -> Result<Vec<u8>, String> {
    let request = ExportRequest {
        measures: measures.iter().map(|name| (*name).to_owned()).collect(),
        ..ExportRequest::default()
    };
    let options = Options {
        sample_table: true,
        ..Options::default()
    };
    let format = ExportFormat::named(format).unwrap();
    let mut out = Vec::new();
    let exported = export(&fixture.profile(&options), &request, format, &mut out);
    exported.map(|()| out).map_err(|error| error.to_string())
}

#[test]
fn folded_stacks_have_exclusive_counts() {
    let folded = exported(&toys(), "folded", &["toys"]).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let run = "[all threads];org.example.Balls.run";
    let draw = format!("{run};org.example.Balls.draw");
    let fib = format!("{draw};org.example.Balls.fib(int)");
    let lines = format!("{run} 5\n{draw} 20\n{fib} 100\n{fib};org.example.Balls.fib(int) 300\n");
    assert_eq!(folded, lines);
}

#[test]
fn every_format_has_a_measure_or_names_those_that_do() {
    let fixture = toys();
    for format in ExportFormat::all() {
        let one = exported(&fixture, format.name, &["toys"]);
        let two = exported(&fixture, format.name, &["toys", "calls"]);
        match format.name {
            "pprof" | "html" | "xml" => assert!(one.is_ok() && two.is_ok(), "{one:?} {two:?}"),
            "folded" | "flamegraph" | "callgrind" | "dot" | "otlp" => {
                assert!(one.is_ok(), "{}: {one:?}", format.name);
                let error = two.unwrap_err();
                assert!(
                    error.ends_with("name one, or take html, pprof, xml"),
                    "{error}"
                );
            }
            _ => {
                let error = one.unwrap_err();
                assert!(error.contains("has samples one by one"), "{error}");
                assert!(error.contains("folded, flamegraph, html, pprof"), "{error}");
            }
        }
    }
}

#[test]
fn exact_counts_are_compared_without_a_test_by_sample() {
    let (a, b) = (toys(), calls());
    let mut diff = Diff::new(DiffView {
        view: named(&["calls"], by(GroupBy::Symbol).table),
        quantity: Quantity::Share,
        level: 0.05,
        by_symbol_only: false,
        flame_graph: false,
    });
    for (side, fixture) in [(Side::A, &a), (Side::B, &b)] {
        diff.add(side, &fixture.profile(&Options::default()))
            .unwrap();
    }
    let mut out = Vec::new();
    diff.render(OutputFormat::Json, &mut out).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let schema = include_str!("../../../schema/diff.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    schema::valid(&schema, &schema, &report).unwrap();
    assert_eq!(
        (&report["tested_by"], &report["version"]),
        (&"nothing".into(), &2.into())
    );
    let rows = report["rows"].as_array().unwrap();
    let fib = rows
        .iter()
        .find(|row| row["symbol"] == "org.example.Balls.fib(int)")
        .unwrap();
    assert_eq!(
        (&fib["a_samples"], &fib["b_samples"]),
        (&90.into(), &180.into())
    );
    assert!(fib.get("p").is_none(), "{fib}");
    let mut out = Vec::new();
    diff.render(OutputFormat::Text, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("exact counts have no error of sampling"),
        "{text}"
    );
}
