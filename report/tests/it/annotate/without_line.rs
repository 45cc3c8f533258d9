//! Checks that samples of a method that no line has are shown nevertheless.

use super::*;
use crate::common::JNI;

/// A recording of a method without bytecode: three samples of its own, two of what it called, and its caller's.
fn recorded() -> Fixture {
    let mut fixture = Fixture::new();
    let dex = fixture.dir.path().join("items.dex");
    fs::write(&dex, DEX).unwrap();
    map(&mut fixture, &dex);
    for (count, user) in [
        (3, &[JNI, LATER + 1][..]),
        (2, &[ARRAYS, JNI + 1, LATER + 1]),
        (4, &[LATER]),
    ] {
        samples(&mut fixture, count, Precision::Exact, user);
    }
    fixture.writer.finish().unwrap();
    fixture
}

/// Sums a count of all lines.
fn sum(annotation: &Annotation, name: &str) -> u64 {
    let document = json(annotation);
    let files = document["files"].as_array().unwrap().iter();
    let lines = files.flat_map(|file| file["lines"].as_array().unwrap());
    lines.filter_map(|line| line[name].as_u64()).sum()
}

#[test]
fn own_samples_of_a_method_without_bytecode_have_a_row() {
    let fixture = recorded();
    let profile = fixture.profile(&options(NameOptions::default()));
    let annotated = |method: &str| {
        let request = AnnotateRequest {
            method: Some(method.to_owned()),
            ..AnnotateRequest::default()
        };
        one(annotate(&profile, &request).unwrap())
    };
    let annotation = annotated("nativeBlit");
    assert_eq!(annotation.method.share.own.get(0), 3);
    let lines: Vec<_> = annotation
        .files
        .iter()
        .flat_map(|file| &file.lines)
        .collect();
    let [line] = lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(line.number, None);
    assert_eq!((line.share.own.get(0), line.share.total.get(0)), (3, 5));
    assert_eq!(
        (sum(&annotation, "self"), sum(&annotation, "self_period")),
        (3, 3_000_000)
    );
    let shown = text(&annotation, columns(80));
    let row = shown
        .lines()
        .find(|row| row.ends_with("(no line)"))
        .unwrap();
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(words, [">", "100.00", "33.33", "55.56", "(no", "line)"]);
    // The lines of its caller are as before.
    let caller = annotated("steps");
    assert_eq!(sum(&caller, "self"), 4);
    assert!(!text(&caller, columns(80)).contains("(no line)"));
}
