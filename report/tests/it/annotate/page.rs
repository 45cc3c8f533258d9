//! Checks that a page has the code of the hottest methods for each event, equal to annotations.

use super::*;
use crate::common::{decoded, manifest, native::run};
use serde_json::Value;
use varid_model::Rate;
use varid_recording::{EventDesc, SessionEvents};
use varid_report::{ExportFormat, ExportRequest, NamePattern, Profile, StackFilter, export};

fn page_options(names: NameOptions) -> Options {
    Options {
        sample_table: true,
        ..options(names)
    }
}

fn page(profile: &Profile, request: &ExportRequest) -> Vec<u8> {
    let mut out = Vec::new();
    export(
        profile,
        request,
        ExportFormat::named("html").unwrap(),
        &mut out,
    )
    .unwrap();
    out
}

/// Reads the code of an event from a page.
fn read(page: &[u8], event: usize) -> Value {
    serde_json::from_str(&decoded(page, event)).unwrap()
}

#[test]
fn a_page_has_the_annotations_of_its_methods() {
    let bytecode = Bytecode::new();
    let profile = bytecode
        .fixture
        .profile(&page_options(NameOptions::default()));
    let request = ExportRequest {
        sources: vec![bytecode.sources.clone()],
        ..ExportRequest::default()
    };
    let found = read(&page(&profile, &request), 0);
    let methods = found["code"].as_array().unwrap();
    assert_eq!(methods.len(), 2, "{found}");
    for method in methods {
        let mut method = method.as_object().unwrap().clone();
        let name = method.remove("symbol").unwrap();
        let expected = bytecode.annotated(name.as_str().unwrap());
        assert_eq!(Value::Object(method), json(&expected), "{name}");
    }
    let text = found.to_string();
    assert!(text.contains("step116(); // of this method"), "{text}");
    assert!(text.contains("const/4 v0"), "{text}");
}

#[test]
fn hostile_sources_and_files_in_a_page_are_text_in_its_blocks() {
    let bytecode = Bytecode::new();
    let folder = bytecode.sources.join("\u{202e}</script>\u{1b}[2J");
    let file = folder.join("org/example/corpus/Lines.java");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let hostile = source().replace("step116", "</script><script>alert(1)</script>\u{202e}");
    fs::write(&file, hostile).unwrap();
    let profile = bytecode
        .fixture
        .profile(&page_options(NameOptions::default()));
    let request = ExportRequest {
        sources: vec![folder],
        ..ExportRequest::default()
    };
    let page = page(&profile, &request);
    assert!(!String::from_utf8_lossy(&page).contains("alert("));
    // The decoder also checks for scripts that do not belong to the page.
    let text = read(&page, 0).to_string();
    assert!(text.contains("<script>alert(1)</script>?"), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains("\\u001b"));
}

#[test]
fn each_event_of_a_page_has_the_samples_and_the_code_of_its_own_page() {
    let mut manifest = manifest();
    let event = |name: &str| EventDesc::new(name, Rate::Period(1_000), 0, 0);
    manifest.events = SessionEvents {
        first: event("cycles"),
        others: vec![event("page-faults")],
    };
    let mut fixture = Fixture::with(manifest);
    let dex = fixture.dir.path().join("items.dex");
    fs::write(&dex, DEX).unwrap();
    map(&mut fixture, &dex);
    for (event, count, user) in [
        (0, 30, &[LATER, ARRAYS + 1][..]),
        (1, 7, &[ARRAYS]),
        (1, 2, &[END, ARRAYS + 1]),
    ] {
        samples_of(&mut fixture, event, (count, Precision::Exact), user);
    }
    fixture.writer.finish().unwrap();
    let profile = fixture.profile(&page_options(NameOptions::default()));
    let whole = page(&profile, &ExportRequest::default());
    for (number, event) in profile.events.iter().enumerate() {
        let request = ExportRequest {
            event: Some(event.event),
            ..ExportRequest::default()
        };
        let alone = page(&profile, &request);
        let [mut of_all, mut alone] = [read(&whole, number), read(&alone, 0)];
        let names = [&mut of_all, &mut alone].map(|page| page["header"]["events"].take());
        assert_eq!(names[0], serde_json::json!(["cycles", "page-faults"]));
        assert_eq!(names[1], serde_json::json!([alone["header"]["event"]]));
        assert_eq!(of_all, alone);
        assert_eq!(of_all["samples"].as_array().unwrap().len(), [30, 9][number]);
        assert_eq!(of_all["code"].as_array().unwrap().len(), 2);
    }
}

/// A library with `functions` functions at [`CODE`], the first of which is long. Also returns the offset of each function.
fn library(fixture: &mut Fixture, functions: usize) -> Vec<u64> {
    let dir = fixture.dir.path().to_owned();
    let (source, library) = (dir.join("built.c"), dir.join("built.so"));
    let mut text = "volatile int x;\n".to_owned();
    for number in 0..functions {
        let body = "    x++;\n".repeat(if number == 0 { 1500 } else { 2 });
        text += &format!("void f{number}(void) {{\n{body}}}\n");
    }
    fs::write(&source, text).unwrap();
    run(std::process::Command::new("cc")
        .args(["-O1", "-g", "-fPIC", "-shared"])
        .args(["-Wl,--build-id=0x1234", "-o"])
        .args([&library, &source]));
    let time = fixture.tick();
    fixture.write(&SessionRecord::Mapping(MappingRecord {
        time,
        pid: Pid::new(100),
        tid: Tid::new(100),
        start: Address::new(CODE),
        len: 0x10_0000,
        pgoff: 0,
        kernel: false,
        mode: None,
        path: library.clone(),
        build_id: vec![0x12, 0x34],
    }));
    let symbols = run(std::process::Command::new("nm").arg(&library));
    let address = |name: String| {
        let line = symbols.lines().find(|line| line.ends_with(&name)).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    };
    (0..functions)
        .map(|number| address(format!(" T f{number}")))
        .collect()
}

#[test]
fn a_page_has_the_hottest_methods_only_and_of_a_long_one_its_hottest_lines() {
    let mut fixture = Fixture::new();
    let functions = library(&mut fixture, 130);
    for (number, start) in functions.iter().enumerate() {
        // The last functions have less than a thousandth each.
        let count = if number < 110 { 100 } else { 1 };
        samples(&mut fixture, count, Precision::Exact, &[CODE + start]);
    }
    // One of them called the long function.
    samples(
        &mut fixture,
        300,
        Precision::Exact,
        &[CODE + functions[0], CODE + functions[120] + 1],
    );
    fixture.writer.finish().unwrap();
    let whole = page_options(NameOptions::default());
    let found = read(
        &page(&fixture.profile(&whole), &ExportRequest::default()),
        0,
    );
    let methods = found["code"].as_array().unwrap();
    let names: Vec<_> = methods
        .iter()
        .map(|method| method["symbol"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 100, "{names:?}");
    assert!(
        names.contains(&"f0") && !names.contains(&"f129"),
        "{names:?}"
    );

    let long = methods.iter().find(|method| method["symbol"] == "f0");
    let lines = long.unwrap()["files"][0]["lines"].as_array().unwrap();
    assert!(lines.len() < 100, "{} lines", lines.len());
    assert!(long.unwrap()["notes"].to_string().contains("hottest"));

    let cold = Options {
        stacks: StackFilter {
            focus: Some(NamePattern::new("^f12[0-9]$").unwrap()),
            ..StackFilter::default()
        },
        ..whole
    };
    let found = read(&page(&fixture.profile(&cold), &ExportRequest::default()), 0);
    let methods = found["code"].as_array().unwrap();
    let names: Vec<_> = methods.iter().map(|method| &method["symbol"]).collect();
    // Of 309 samples, each one is more than a thousandth, and the caller has 97 %.
    assert_eq!(names.len(), 11, "{names:?}");
}
