//! Checks sessions that have calling contexts and no samples.

use super::{
    measures::{TOY_TREE, TOYS, add_contexts, expected, named, values},
    *,
};
use std::fs;
use varid_recording::SessionReader;
use varid_report::{
    AnnotateRequest, Annotated, AnnotationText, Diff, DiffView, ExportFormat, ExportRequest,
    Profile, Quantity, Side, annotate, export, render, write_annotation_text,
};

/// A session of contexts only. Its perf.data says what is mapped.
fn counted() -> Fixture {
    let mut fixture = Fixture::new();
    add_contexts(&mut fixture, &TOYS, &TOY_TREE);
    fixture.writer.finish().unwrap();
    fixture
}

fn rendered(profile: &Profile, view: &View, format: OutputFormat) -> Result<String, String> {
    let mut out = Vec::new();
    let rendered = render(profile, view, format, &mut out);
    rendered.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn the_first_exact_measure_is_shown_by_default() {
    let fixture = counted();
    let options = Options::default();
    let report = json(&fixture, &options, &View::default());
    let measures = serde_json::json!([
        {"name": "calls", "unit": "calls", "exact": true, "sum": 101},
    ]);
    assert_eq!(
        (&report["version"], &report["measures"]),
        (&2.into(), &measures)
    );
    let calls = [("fib(int)", 90, 90), ("draw", 10, 100), ("run", 1, 101)];
    assert_eq!(values(&report, "calls"), expected(&calls));
    let text = fixture.render(&options, &View::default(), OutputFormat::Text);
    let head = "No samples; percentages are of each measure: calls 101 (exact)\n";
    assert!(text.contains(head), "{text}");
    // An event that is named is shown.
    let event = Some("cpu-clock".to_owned());
    let named = Options { event, ..options };
    assert_eq!(json(&fixture, &named, &View::default())["version"], 1);
}

#[test]
fn every_table_shows_it_or_says_that_there_are_no_samples() {
    let fixture = counted();
    let profile = fixture.profile(&Options::default());
    let side_by_side = View {
        side_by_side: true,
        ..by(GroupBy::Symbol)
    };
    let views = ReportTable::all().map(|table| View {
        table,
        ..View::default()
    });
    for view in views.chain([side_by_side]) {
        let has_samples = view.side_by_side || ["event", "vm-frame"].contains(&view.table.name);
        // This table shows the calls of methods in VMs that count them.
        let view = match view.table.measures {
            [] => view,
            _ => named(&["calls"], view.table),
        };
        for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::Csv] {
            match rendered(&profile, &view, format) {
                Ok(shown) => assert!(!has_samples && shown.contains("calls"), "{shown}"),
                Err(error) => {
                    assert!(has_samples, "{}: {error}", view.table.name);
                    assert!(error.starts_with("this session has no samples"), "{error}");
                    assert!(error.ends_with("it has calls, toys"), "{error}");
                }
            }
        }
    }
    let annotated = annotate(&profile, &AnnotateRequest::default()).unwrap();
    let Annotated::Method(annotation) = annotated else {
        panic!("{annotated:?}");
    };
    let mut text = Vec::new();
    write_annotation_text(&annotation, AnnotationText::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let head = "90 of 101 calls are in it, 89.11 %; 90 with what it called, 89.11 %";
    assert_eq!(text.lines().nth(1), Some(head));
}

#[test]
fn every_format_has_it_or_names_those_that_do() {
    let fixture = counted();
    let profile = fixture.profile(&Options {
        sample_table: true,
        ..Options::default()
    });
    for format in ExportFormat::all() {
        let mut out = Vec::new();
        let exported = export(&profile, &ExportRequest::default(), format, &mut out);
        match (format.name, exported) {
            (
                "folded" | "flamegraph" | "html" | "pprof" | "callgrind" | "dot" | "otlp" | "xml",
                done,
            ) => {
                done.unwrap();
                assert!(!out.is_empty(), "{}", format.name);
            }
            (_, done) => {
                let error = done.unwrap_err().to_string();
                assert!(error.contains("has samples one by one"), "{error}");
            }
        }
        if format.name == "folded" {
            let folded = String::from_utf8(out).unwrap();
            assert!(
                folded.starts_with("[all threads];org.example.Balls.run 1\n"),
                "{folded}"
            );
        }
    }
}

#[test]
fn sessions_without_samples_are_compared() {
    let (fixture, more) = (counted(), counted());
    let mut diff = Diff::new(DiffView {
        view: by(GroupBy::Symbol),
        quantity: Quantity::Share,
        level: 0.05,
        by_symbol_only: false,
        flame_graph: false,
    });
    for (side, fixture) in [(Side::A, &fixture), (Side::B, &more)] {
        diff.add(side, &fixture.profile(&Options::default()))
            .unwrap();
    }
    let mut out = Vec::new();
    diff.render(OutputFormat::Json, &mut out).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(report["event"], "calls");
    assert_eq!(report["tested_by"], "nothing");
}

#[test]
fn without_perf_data_what_was_counted_is_there_and_has_no_names() {
    let fixture = counted();
    fs::remove_file(fixture.session.join("perf.data")).unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{report}");
    assert_eq!(rows[0]["measures"]["calls"]["self"], 101);
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.starts_with("there is no perf.data"), "{note}");
    let mut packed = Vec::new();
    let session = SessionReader::open(&fixture.session).unwrap();
    varid_report::pack(&session, &Options::default().names, &mut packed).unwrap();
    // Without contexts, the folder is no session that can be shown.
    fs::remove_file(fixture.session.join("contexts.data")).unwrap();
    let error = Profile::from_session(&session, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("perf.data"), "{error}");
}
