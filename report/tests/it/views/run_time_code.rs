//! Checks that run-time code is one method, however often it was compiled, and its layer.

use super::*;
use crate::common::{decoded, elf, slot};
use varid_model::{Mode, Tid};
use varid_recording::{ImageKind, MappingRecord, SessionImage, SessionRecord};
use varid_report::{
    AnnotateRequest, Annotated, ExportFormat, ExportRequest, annotate, export,
    write_annotation_text,
};

const JIT: u64 = 0x7600_0000_0000;
const FIRST: u64 = JIT + 0x1010;
const SECOND: u64 = JIT + 0x1210;
const CALLER: u64 = JIT + 0x1410;
const LIBRARY: u64 = JIT + 0x1610;
const STUB: u64 = JIT + 0x1810;
const HOT: &str = "JS:*hot /srv/app.js:4:14";

/// A method that was compiled twice in one process and once in another one. Each copy has fewer samples than a second
/// method.
fn recorded() -> Fixture {
    let mut fixture = Fixture::new();
    for pid in [100, 200] {
        let name = format!("jit-{pid}.elf");
        let path = fixture.writer.symbols().join(&name);
        let build_id = [u8::try_from(pid).unwrap(); 20];
        elf(
            &path,
            &build_id,
            vec![
                slot(0x1000, HOT),
                slot(
                    0x1200,
                    if pid == 100 {
                        HOT
                    } else {
                        "JS:*once /srv/app.js:9:1"
                    },
                ),
                slot(0x1400, "JS:^loop /srv/app.js:1:1"),
                slot(
                    0x1600,
                    "java.lang.Object java.util.HashMap.get(java.lang.Object)",
                ),
                slot(0x1800, "Interpreter"),
            ],
        );
        fixture.writer.manifest_mut().images.push(SessionImage {
            path: "[jit]".to_owned(),
            build_id: String::new(),
            kind: ImageKind::Remap,
            layer: Layer::App,
            substitute: Some(format!("symbols/{name}")),
            location: None,
        });
        let time = fixture.tick();
        fixture.write(&SessionRecord::Mapping(MappingRecord {
            time,
            pid: Pid::new(pid),
            tid: Tid::new(pid),
            start: Address::new(JIT),
            len: 0x4000,
            pgoff: 0,
            kernel: false,
            mode: Some(Mode::default()),
            path,
            build_id: build_id.to_vec(),
        }));
    }
    // With this library, the stub belongs to HotSpot.
    let hotspot = std::path::Path::new("/nonexistent/libjvm.so");
    fixture.map(200, JIT + 0x10_0000, hotspot, &[]);
    fixture.samples(20, (100, 100), &[FIRST, CALLER + 1]);
    fixture.samples(20, (100, 100), &[SECOND, FIRST + 1, CALLER + 1]);
    fixture.samples(20, (200, 200), &[FIRST, CALLER + 1]);
    fixture.samples(30, (200, 200), &[SECOND, CALLER + 1]);
    fixture.samples(7, (200, 200), &[LIBRARY, CALLER + 1]);
    fixture.samples(3, (200, 200), &[STUB, CALLER + 1]);
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn the_copies_of_a_method_are_one_row_in_every_view() {
    let fixture = recorded();
    let report = json(&fixture, &Options::default(), &View::default());
    assert_eq!(report["rows"][0]["symbol"], HOT);
    let symbols = shares(&report, "rows", "symbol");
    assert_eq!(symbols[HOT], (60, 60));
    assert_eq!(symbols["JS:^loop /srv/app.js:1:1"], (0, 100));
    assert_eq!(shares(&report, "images", "image")["[jit]"], (100, 100));
    let graph = json(&fixture, &Options::default(), &callgraph());
    let rows = graph["rows"].as_array().unwrap();
    let hot = rows.iter().find(|row| row["symbol"] == HOT).unwrap();
    let callers = hot["callers"].as_array().unwrap();
    // One copy called the other.
    let called = |name: &str| {
        let caller = callers.iter().find(|row| row["symbol"] == name).unwrap();
        caller["samples"].as_u64().unwrap()
    };
    assert_eq!((callers.len(), called(HOT)), (2, 20));
    assert_eq!(called("JS:^loop /srv/app.js:1:1"), 60);
}

#[test]
fn the_copies_of_a_method_are_one_in_a_page_and_a_flame_graph() {
    let fixture = recorded();
    let options = Options {
        sample_table: true,
        sampled_addresses: true,
        ..Options::default()
    };
    let profile = fixture.profile(&options);
    let written = |format| {
        let mut out = Vec::new();
        let request = ExportRequest::default();
        export(&profile, &request, format, &mut out).unwrap();
        out
    };
    let page: serde_json::Value =
        serde_json::from_str(&decoded(&written(ExportFormat::named("html").unwrap()), 0)).unwrap();
    let symbols = page["symbols"].as_array().unwrap().iter();
    assert_eq!(symbols.filter(|symbol| symbol[0] == HOT).count(), 1);
    let picture = String::from_utf8(written(ExportFormat::named("flamegraph").unwrap())).unwrap();
    let boxes = picture.matches("<title>JS:*hot /srv/app.js:4:14\n").count();
    // Below the loop, and below itself.
    assert_eq!(boxes, 2, "{picture}");
}

#[test]
fn annotate_takes_the_name_of_a_method_without_its_place() {
    let fixture = recorded();
    let options = Options {
        sampled_addresses: true,
        ..Options::default()
    };
    let profile = fixture.profile(&options);
    let request = AnnotateRequest {
        method: Some("hot".to_owned()),
        ..AnnotateRequest::default()
    };
    let Annotated::Method(method) = annotate(&profile, &request).unwrap() else {
        panic!("several methods are meant");
    };
    let mut text = Vec::new();
    write_annotation_text(&method, Default::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("60 of 100 samples"), "{text}");
    // It cannot be compiled with -g.
    assert!(!text.contains("-g;"), "{text}");
    assert!(text.contains("made at run time"), "{text}");
}

#[test]
fn layers_follow_the_names_of_a_jit() {
    let report = json(&recorded(), &Options::default(), &View::default());
    let layers = shares(&report, "layers", "layer");
    assert_eq!(layers["app"], (90, 100));
    assert_eq!(layers["framework"], (7, 7));
    assert_eq!(layers["vm"], (3, 3));
}

#[test]
fn frames_that_are_cut_off_are_no_app() {
    let mut fixture = Fixture::new();
    let cut = varid_recording::remap::address_of(varid_model::Marker::Reason(
        varid_model::Reason::Truncated,
    ));
    fixture.samples(10, (200, 200), &[crate::common::BLIT, cut.get()]);
    fixture.writer.finish().unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    let layers = shares(&report, "layers", "layer");
    assert_eq!(layers.get("app"), None, "{layers:?}");
}

#[test]
fn instructions_that_nothing_names_are_one_row_of_their_image() {
    let mut fixture = Fixture::new();
    for offset in 0..20 {
        fixture.samples(1, (100, 100), &[crate::common::BLIT + 4 * offset, RUN + 1]);
        fixture.samples(1, (100, 100), &[0xdead_0000 + offset]);
    }
    fixture.writer.finish().unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    let symbols = shares(&report, "rows", "symbol");
    assert_eq!(symbols["libskia.so+0x?"], (20, 20));
    assert_eq!(symbols["[unknown]+0x?"], (20, 20));
    assert_eq!(symbols.len(), 3, "{symbols:?}");
}

#[test]
fn java_methods_of_folded_stacks_are_of_a_jit() {
    const NATIVE: u64 = 0x7700_0000_0000;
    let mut fixture = Fixture::bare();
    let path = fixture.writer.symbols().join("native.elf");
    elf(
        &path,
        &[5; 20],
        vec![
            slot(0x1000, "org/example/App.parse"),
            slot(0x1100, "java/lang/Thread.run"),
            slot(0x1200, "memcpy"),
        ],
    );
    fixture.writer.manifest_mut().images = vec![SessionImage {
        path: "[native]".to_owned(),
        build_id: String::new(),
        kind: ImageKind::Elf,
        layer: Layer::Native,
        substitute: Some("symbols/native.elf".to_owned()),
        location: None,
    }];
    fixture.map(100, NATIVE, &path, &[5; 20]);
    let [parse, run, copy] = [0x1010, 0x1110, 0x1210].map(|offset| NATIVE + offset);
    fixture.samples(30, (100, 100), &[parse, run + 1]);
    fixture.samples(10, (100, 100), &[copy, parse + 1, run + 1]);
    fixture.writer.finish().unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    let layers = shares(&report, "layers", "layer");
    assert_eq!(
        (layers["app"], layers["framework"], layers["native"]),
        ((30, 40), (0, 40), (10, 10))
    );
    let images = shares(&report, "images", "image");
    assert_eq!((images["[jit]"], images["[native]"]), ((30, 40), (10, 10)));
}

#[test]
fn the_names_of_another_session_s_jit_are_those_of_a_jit() {
    const CODE: u64 = 0x7700_0000_0000;
    let mut fixture = Fixture::bare();
    // As after varid import: the file is not listed.
    let symbols = fixture.dir.path().join("recorded/symbols");
    std::fs::create_dir_all(&symbols).unwrap();
    let path = symbols.join("jit-12.elf");
    let (first, second) = (slot(0x1000, HOT), slot(0x1100, HOT));
    elf(&path, &[5; 20], vec![first, second]);
    fixture.map(100, CODE, &path, &[5; 20]);
    fixture.samples(30, (100, 100), &[CODE + 0x1010]);
    fixture.samples(10, (100, 100), &[CODE + 0x1110]);
    fixture.writer.finish().unwrap();
    let report = json(&fixture, &Options::default(), &View::default());
    assert_eq!(shares(&report, "rows", "symbol")[HOT], (40, 40));
    assert_eq!(shares(&report, "layers", "layer")["app"], (40, 40));
    assert_eq!(shares(&report, "images", "image")["[jit]"], (40, 40));
}
