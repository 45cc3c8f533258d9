//! Checks the lines of calling contexts: those of call sites, and those of the places that were counted.

use super::*;
use serde_json::Value;
use std::collections::BTreeMap;
use varid_model::{CodeUnits, MonotonicNs};
use varid_recording::{
    ContextCount, ContextCounter, ContextMethod, ContextNode, ContextSite, ContextWriter,
    CounterId, NodeId, SessionReader,
};
use varid_report::{
    ExportFormat, ExportRequest, GroupBy, OutputFormat, Profile, ReportTable, View, export, render,
};

use crate::common::decoded;

/// `steps` with counts at its instructions. It calls `arrays` at line 119, where it is counted as a whole.
fn recording() -> Fixture {
    let mut fixture = Fixture::new();
    let dex = fixture.dir.path().join("items.dex");
    fs::write(&dex, DEX).unwrap();
    map(&mut fixture, &dex);
    let (pid, time) = (Pid::new(100), fixture.tick());
    let counter = ContextCounter {
        name: "bytecodes".to_owned(),
        unit: "bytecodes".to_owned(),
    };
    let mut contexts = fixture.writer.create_contexts(&[counter]).unwrap();
    contexts.add_process(pid, "a VM").unwrap();
    let (caller, callee) = add_nodes(&mut contexts, time);
    // The last place is not in the method.
    let places = [(0, 3), (4, 50), (9, 20), (0x34, 6), (0x7000, 1)];
    let places = places.map(|(place, value)| (caller, Some(place), value));
    for (node, place, value) in places.into_iter().chain([(callee, None, 100)]) {
        let count = ContextCount {
            counter: CounterId(0),
            place,
            value,
        };
        contexts.set_count(node, &count).unwrap();
    }
    contexts.end_process(pid, None).unwrap();
    contexts.finish().unwrap();
    fixture.writer.finish().unwrap();
    fixture
}

/// Adds a node of `steps`, and one of `arrays` that it calls.
fn add_nodes(contexts: &mut ContextWriter, time: MonotonicNs) -> (NodeId, NodeId) {
    let pid = Pid::new(100);
    let mut method = |address| {
        let address = Address::new(address);
        let method = ContextMethod {
            pid,
            address,
            code: None,
        };
        let id = contexts.add_method(&method).unwrap();
        let node = ContextNode {
            pid,
            tid: None,
            parent: None,
            address,
            site: None,
            time,
        };
        (id, node)
    };
    let ((steps, caller), (_, callee)) = (method(STEPS), method(ARRAYS));
    let site = ContextSite {
        method: steps,
        pc: CodeUnits::new(0x34),
        opcode: 0x71,
        target: None,
    };
    let site = contexts.add_site(&site).unwrap();
    let caller = contexts.add_node(&caller).unwrap();
    let callee = contexts
        .add_node(&ContextNode {
            parent: Some(caller),
            site: Some(site),
            ..callee
        })
        .unwrap();
    (caller, callee)
}

fn profile(fixture: &Fixture) -> Profile {
    fixture.profile(&Options {
        sample_table: true,
        ..options(NameOptions::default())
    })
}

fn rows(profile: &Profile, by: GroupBy) -> Vec<Value> {
    let view = View {
        table: ReportTable::by(by),
        ..View::default()
    };
    let mut out = Vec::new();
    render(profile, &view, OutputFormat::Json, &mut out).unwrap();
    let report: Value = serde_json::from_slice(&out).unwrap();
    report["rows"].as_array().unwrap().clone()
}

/// Own and total values of a row.
fn values(row: &Value) -> [u64; 2] {
    ["self", "total"].map(|key| row["measures"]["bytecodes"][key].as_u64().unwrap())
}

#[test]
fn counts_are_at_the_lines_of_their_places_and_calls_at_those_of_their_sites() {
    let fixture = recording();
    let profile = profile(&fixture);
    let lines: BTreeMap<u64, [u64; 2]> = rows(&profile, GroupBy::Line)
        .iter()
        .filter(|row| row["symbol"] == "org.example.corpus.Lines.steps")
        .map(|row| (row["line"].as_u64().unwrap(), values(row)))
        .collect();
    let expected = [(100, [4, 4]), (116, [70, 70]), (119, [6, 106])];
    assert_eq!(lines, BTreeMap::from(expected));
    // A method is one row.
    let methods: Vec<_> = rows(&profile, GroupBy::Symbol).iter().map(values).collect();
    assert_eq!(methods, [[100, 100], [80, 180]]);
}

#[test]
fn an_annotation_has_the_values_of_lines_and_instructions() {
    let fixture = recording();
    let profile = profile(&fixture);
    let request = |measures: &[&str]| AnnotateRequest {
        method: Some("steps".to_owned()),
        measures: measures.iter().map(|name| (*name).to_owned()).collect(),
        ..AnnotateRequest::default()
    };
    let annotation = one(annotate(&profile, &request(&["bytecodes"])).unwrap());
    let found = json(&annotation);
    // It is the session's default.
    assert_eq!(
        found,
        json(&one(annotate(&profile, &request(&[])).unwrap()))
    );
    let schema = include_str!("../../../schema/annotate.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    crate::views::schema::valid(&schema, &schema, &found).unwrap();
    let measure = serde_json::json!({"name": "bytecodes", "unit": "bytecodes", "sum": 180});
    assert_eq!(
        (&found["version"], &found["measure"]),
        (&2.into(), &measure)
    );
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
    let mut lines = Vec::new();
    let mut instructions = Vec::new();
    for line in found["files"][0]["lines"].as_array().unwrap() {
        if line["total"].as_u64().is_some_and(|total| total > 0) {
            lines.push(["line", "self", "total"].map(|key| number(line, key)));
        }
        let all = line["instructions"].as_array().into_iter().flatten();
        let counted = all.filter(|row| row["total"] != 0);
        instructions.extend(counted.map(|row| ["pc", "self", "total"].map(|key| number(row, key))));
    }
    assert_eq!(lines, [[100, 4, 4], [116, 70, 70], [119, 6, 106]]);
    assert_eq!(
        instructions,
        [[0, 4, 4], [4, 50, 50], [9, 20, 20], [0x34, 6, 106]]
    );
    let text = text(&annotation, columns(80));
    let head = "80 of 180 bytecodes are in it, 44.44 %; 180 with what it called, 100.00 %";
    assert_eq!(text.lines().nth(1), Some(head));
    let error = annotate(&profile, &request(&["bytecodes", "samples"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an annotation is of one measure: name one"
    );
}

#[test]
fn a_page_has_the_lines() {
    let fixture = recording();
    let mut page = Vec::new();
    let format = ExportFormat::named("html").unwrap();
    export(
        &profile(&fixture),
        &ExportRequest::default(),
        format,
        &mut page,
    )
    .unwrap();
    let page: Value = serde_json::from_str(&decoded(&page, 0)).unwrap();
    let stacks: BTreeMap<String, u64> = page["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let stack = row[3]
                .as_str()
                .unwrap()
                .replace("org.example.corpus.Lines.", "");
            (stack, row[2].as_u64().unwrap())
        })
        .collect();
    let steps = |line: u32| format!("steps org/example/corpus/Lines.java:{line}");
    for (line, value) in [(100, 4), (116, 70), (119, 6)] {
        assert_eq!(stacks.get(&steps(line)), Some(&value), "{stacks:?}");
    }
    let mut called = stacks.iter().filter(|(stack, _)| stack.contains("arrays"));
    let (stack, value) = called.next().unwrap();
    assert!(stack.starts_with(&format!("{} > ", steps(119))), "{stack}");
    assert_eq!(*value, 100);
    let code: Vec<_> = page["code"].as_array().unwrap().iter().collect();
    let of_steps = code
        .iter()
        .find(|code| code["symbol"] == "org.example.corpus.Lines.steps");
    assert_eq!(of_steps.unwrap()["method"]["self"], 80, "{code:?}");
}

/// Exports the tree as XML.
fn xml(fixture: &Fixture, measures: &[&str]) -> Result<String, String> {
    let session = SessionReader::open(&fixture.session).unwrap();
    let request = ExportRequest {
        measures: measures.iter().map(|name| (*name).to_owned()).collect(),
        contexts: session.contexts().unwrap(),
        ..ExportRequest::default()
    };
    let format = ExportFormat::named("xml").unwrap();
    let mut out = Vec::new();
    export(&profile(fixture), &request, format, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn the_tree_in_xml_has_call_sites_and_the_values_of_places() {
    let fixture = recording();
    let all = xml(&fixture, &[]).unwrap();
    insta::assert_snapshot!("xml", all);
    assert_eq!(xml(&fixture, &["bytecodes"]).unwrap(), all);
    let error = xml(&fixture, &["samples"]).unwrap_err();
    assert_eq!(
        error,
        "this session has no measure 'samples': it has bytecodes"
    );
}
