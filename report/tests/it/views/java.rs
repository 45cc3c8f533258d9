//! Checks the names of methods of Java on HotSpot.

use super::{schema::valid, *};
use crate::common::java::{FRAMEWORK_BASE, LIBJVM, method, with_lines};
use crate::common::slot;
use varid_model::{Precision, Tid};
use varid_recording::{REMAP_BASE, SessionRecord};
use varid_report::{
    ExportFormat, ExportRequest, NameOptions, ShownSignatures, TreeDirection, export,
};
use varid_symbolizer::substitute::Substitute;

const ARRAY: u64 = REMAP_BASE + 0x1010;
const LIST: u64 = REMAP_BASE + 0x1110;
const MUL: u64 = REMAP_BASE + 0x1210;
const SUM: &str = "org.example.App.sum";

/// Two methods that differ in their parameters only, and one with a name of its own.
fn recorded() -> Fixture {
    let app = [
        method(0x1000, 0x100, SUM, "([I)D"),
        method(0x1100, 0x100, SUM, "(ILjava/lang/String;)D"),
        method(0x1200, 0x100, "org.example.App.mul", "(I)D"),
    ];
    let mut fixture = Fixture::java(&app, &[]);
    fixture.samples(30, (100, 100), &[ARRAY, MUL + 1]);
    fixture.samples(20, (100, 100), &[LIST, MUL + 1]);
    fixture.samples(10, (100, 100), &[MUL]);
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn overloaded_java_methods_are_rows_of_their_own_in_every_view() {
    let fixture = recorded();
    let options = Options::default();
    let report = json(&fixture, &options, &View::default());
    let rows = report["rows"].as_array().unwrap().iter();
    let rows = rows.map(|row| {
        let text = |key: &str| row[key].as_str().unwrap();
        (text("symbol"), text("signature"), row["self"].as_u64())
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            (SUM, "(int[])", Some(30)),
            (SUM, "(int, java.lang.String)", Some(20)),
            ("org.example.App.mul", "(int)", Some(10)),
        ]
    );
    let text = fixture.render(&options, &View::default(), OutputFormat::Text);
    for name in [
        " org.example.App.sum(int[])\n",
        " org.example.App.sum(int, java.lang.String)\n",
        " org.example.App.mul\n",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let mut folded = Vec::new();
    let request = ExportRequest::default();
    let profile = fixture.profile(&options);
    export(
        &profile,
        &request,
        ExportFormat::named("folded").unwrap(),
        &mut folded,
    )
    .unwrap();
    let folded = String::from_utf8(folded).unwrap();
    assert!(
        folded.contains("org.example.App.mul;org.example.App.sum(int[]) 30000000\n"),
        "{folded}"
    );
}

#[test]
fn all_java_methods_have_their_signatures_on_request() {
    let fixture = recorded();
    let options = Options {
        names: NameOptions {
            signatures: ShownSignatures::OfAll,
            ..NameOptions::default()
        },
        ..Options::default()
    };
    let text = fixture.render(&options, &View::default(), OutputFormat::Text);
    assert!(text.contains(" org.example.App.mul(int)\n"), "{text}");
    // Either name selects it.
    for pattern in [r"\.mul$", r"\.mul\(int\)$"] {
        let view = View {
            code: CodeFilter {
                symbol: Some(NamePattern::new(pattern).unwrap()),
                ..CodeFilter::default()
            },
            ..View::default()
        };
        let report = json(&fixture, &Options::default(), &view);
        assert_eq!(report["rows"].as_array().unwrap().len(), 1, "{pattern}");
    }
}

#[test]
fn json_with_signatures_keeps_to_its_schema() {
    let schema = include_str!("../../../schema/report.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let fixture = recorded();
    for table in [
        ReportTable::OVERVIEW,
        ReportTable::CALLGRAPH,
        ReportTable::by(GroupBy::Line),
        ReportTable::tree(TreeDirection::TopDown),
    ] {
        let view = View {
            table,
            ..View::default()
        };
        let report = json(&fixture, &Options::default(), &view);
        assert!(report.to_string().contains("(int, java.lang.String)"));
        valid(&schema, &schema, &report).unwrap_or_else(|wrong| panic!("{table:?}: {wrong}"));
    }
}

/// Functions of libjvm, by their places in it.
const COLLECT: u64 = LIBJVM + 0x1010;
const DEFINE: u64 = LIBJVM + 0x1110;
const START: u64 = LIBJVM + 0x1210;
const PARSE: u64 = LIBJVM + 0x1310;
const LOAD: u64 = FRAMEWORK_BASE + 0x1010;

/// A program of which `program`, `collector` and `compiler` samples are in a Java method, in the collector's threads and in the compiler's, and
/// 5 each in other work of the JVM.
pub fn working(program: u64, collector: u64, compiler: u64) -> Fixture {
    let app = [method(0x1000, 0x100, "org.example.App.work", "()V")];
    let load = "java.lang.ClassLoader.defineClass";
    let mut fixture = Fixture::java(&app, &[method(0x1000, 0x100, load, "()V")]);
    let functions = [
        slot(0x1000, "VM_G1CollectForAllocation::doit()"),
        slot(0x1100, "JVM_DefineClass"),
        slot(0x1200, "Thread::call_run()"),
        slot(0x1300, "Symbol::new_symbol()"),
    ];
    let libjvm = fixture.libjvm();
    Substitute::of_functions(functions, 0x4000, &[7; 20])
        .unwrap()
        .write(&libjvm)
        .unwrap();
    let work = REMAP_BASE + 0x1010;
    for (count, tid, thread, user) in [
        (program, 100, "java", &[work][..]),
        (collector, 101, "GC Thread#0", &[START]),
        (compiler, 102, "C2 CompilerThre", &[START]),
        (5, 103, "VM Thread", &[PARSE, COLLECT + 1, START + 1]),
        (5, 103, "VM Thread", &[START]),
        // The class loader's own method is a part of the program.
        (5, 100, "java", &[PARSE, DEFINE + 1, LOAD + 1, work + 1]),
        (5, 100, "java", &[LOAD, DEFINE + 1, work + 1]),
        (5, 100, "java", &[PARSE, work + 1]),
    ] {
        let time = fixture.tick();
        fixture.write(&SessionRecord::Comm {
            time,
            pid: Pid::new(100),
            tid: Tid::new(tid),
            exec: false,
            name: thread.to_owned(),
        });
        fixture.samples(count, (100, tid), user);
    }
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn each_sample_of_a_jvm_counts_for_one_activity() {
    let fixture = working(40, 20, 10);
    let report = json(&fixture, &Options::default(), &by(GroupBy::Activity));
    let shares = shares(&report, "rows", "activity");
    let expected = [
        ("program", 50),
        ("garbage collection", 25),
        ("JIT compilation", 10),
        ("class loading", 5),
        ("other VM", 5),
    ];
    let expected = expected.map(|(name, samples)| (name.to_owned(), (samples, samples)));
    assert_eq!(shares, expected.into());
}

/// The first line of a report.
fn first_line(fixture: &Fixture) -> String {
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_report_of_java_begins_with_what_takes_most_of_the_jvm() {
    for ([program, collector, compiler], expected) in [
        (
            [100, 300, 20],
            "69 % is garbage collection: look at what allocates, and at the size of the heap (-Xmx)",
        ),
        (
            [100, 20, 300],
            "67 % is JIT compilation: the program was still warming up: record it longer, or later",
        ),
        (
            [300, 50, 50],
            "71 % is in org.example.App.work itself: look at its own code",
        ),
        // The collector takes as much as the program, or too little.
        ([200, 210, 0], "Profile of "),
    ] {
        let fixture = working(program, collector, compiler);
        let first = first_line(&fixture);
        assert!(first.starts_with(expected), "{first}");
    }
    let report = json(
        &working(100, 300, 20),
        &Options::default(),
        &View::default(),
    );
    assert_eq!(report["finding"]["activity"], "garbage collection");
    assert_eq!(report["finding"]["layer"], "vm");
}

#[test]
fn the_hottest_line_of_a_java_method_is_in_the_first_sentence() {
    let lines = [(0, 11), (4, 12), (9, 13)];
    let hot = with_lines(method(0x1000, 0x10, "org.example.App.hot", "()V"), &lines);
    for (exact, near, expected) in [
        (
            200,
            10,
            "93 % is in org.example.App.hot itself, 67 % at App.java:12: look at its own code",
        ),
        (
            10,
            200,
            "93 % is in org.example.App.hot itself, 67 % at App.java:~12: look at its own code",
        ),
    ] {
        let mut fixture = Fixture::java(std::slice::from_ref(&hot), &[]);
        let hot = REMAP_BASE + 0x1000;
        fixture.samples(exact, (100, 100), &[hot + 5]);
        fixture.precision = Precision::Approximate;
        fixture.samples(near, (100, 100), &[hot + 4]);
        fixture.precision = Precision::Exact;
        fixture.samples(80, (100, 100), &[hot + 9]);
        fixture.samples(22, (100, 100), &[LIBJVM + 0x10]);
        fixture.writer.finish().unwrap();
        assert_eq!(first_line(&fixture), expected);
    }
}
