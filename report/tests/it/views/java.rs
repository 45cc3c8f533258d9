//! Checks the names of methods of Java on HotSpot.

use super::{schema::valid, *};
use crate::common::java::method;
use varid_recording::REMAP_BASE;
use varid_report::{
    ExportFormat, ExportRequest, NameOptions, ShownSignatures, TreeDirection, export,
};

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
