//! Checks the instructions of dex methods in the remap range, whose dex files the session has.

use super::*;
use crate::common::java::{method, with_lines};
use varid_recording::{DEX_ZIP, REMAP_BASE};

const OFFSET: u64 = 0x1000;
const METHOD: u64 = REMAP_BASE + OFFSET;

/// The number of code units of `steps`.
fn units() -> u64 {
    let dex = DexFile::parse(DEX).unwrap();
    let mut methods = dex.methods().flatten();
    let is_steps = |signature: &str| signature == "Lorg/example/corpus/Lines;->steps()V";
    let steps = methods.find(|method| is_steps(&method.id.signature().unwrap()));
    let code = steps.unwrap().code.unwrap();
    u64::from(code.end - code.start) / 2
}

/// Samples of `steps` with so many addresses: 3 at unit 4, and 2 in a callee of unit 0x2d.
fn recorded(size: u64, content: &[u8]) -> Fixture {
    let name = "org.example.corpus.Lines.steps";
    let mut steps = with_lines(method(OFFSET, size, name, "()V"), &[(0, 100), (4, 116)]);
    steps.source.as_mut().unwrap().class = "org.example.corpus.Lines".to_owned();
    let mut fixture = Fixture::java(&[steps], &[]);
    fs::write(fixture.session.join(DEX_ZIP), content).unwrap();
    samples(&mut fixture, 3, Precision::Exact, &[METHOD + 4]);
    let callee = crate::common::java::LIBJVM;
    samples(
        &mut fixture,
        2,
        Precision::Exact,
        &[callee, METHOD + 0x2d + 1],
    );
    fixture.writer.finish().unwrap();
    fixture
}

fn annotated(fixture: &Fixture) -> serde_json::Value {
    let request = AnnotateRequest {
        method: Some("Lines.steps".to_owned()),
        ..AnnotateRequest::default()
    };
    let profile = fixture.profile(&options(NameOptions::default()));
    json(&one(annotate(&profile, &request).unwrap()))
}

#[test]
fn each_code_unit_has_an_address() {
    // The archive's reader takes a dex file as it is, too.
    let found = annotated(&recorded(units() + 1, DEX));
    assert_eq!(found["method"]["code"], "dex", "{found:#}");
    let lines = found["files"][0]["lines"].as_array().unwrap().iter();
    let instructions = lines.flat_map(|line| line["instructions"].as_array().unwrap());
    let sampled = instructions.filter(|one| one["total"] != 0);
    let sampled: Vec<_> = sampled
        .map(|one| ["pc", "self", "total"].map(|key| one[key].as_u64().unwrap()))
        .collect();
    assert_eq!(sampled, [[4, 3, 3], [0x2d, 0, 2]]);
}

#[test]
fn a_file_without_the_counted_method_is_named() {
    for (fixture, why) in [
        (
            recorded(units() + 2, DEX),
            "steps has another length than was recorded",
        ),
        (recorded(units() + 1, b"PK"), "dex.zip: "),
    ] {
        let found = annotated(&fixture);
        assert!(found["notes"].to_string().contains(why), "{found:#}");
    }
}
