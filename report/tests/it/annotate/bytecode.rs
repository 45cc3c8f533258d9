//! Annotates bytecode, beside and below lines of Java.

use super::*;
use crate::views::schema::valid;

#[test]
fn on_a_terminal_of_eighty_columns_bytecode_is_beneath_the_lines() {
    let bytecode = Bytecode::new();
    let annotation = bytecode.annotated("org.example.corpus.Lines.steps");
    insta::assert_snapshot!("steps_80", bytecode.text(&annotation, columns(80)));
}

#[test]
fn on_a_terminal_of_160_columns_bytecode_is_beside_the_lines() {
    let bytecode = Bytecode::new();
    let annotation = bytecode.annotated("steps");
    insta::assert_snapshot!("steps_160", bytecode.text(&annotation, columns(160)));
}

#[test]
fn the_hottest_line_with_those_around_it_in_colour() {
    let bytecode = Bytecode::new();
    let annotation = bytecode.annotate(&AnnotateRequest {
        limit: Some(1),
        context: 1,
        ..bytecode.request("steps")
    });
    let look = AnnotationText {
        width: Some(100),
        colour: true,
    };
    let text = bytecode.text(&annotation, look).replace('\x1b', "ESC");
    insta::assert_snapshot!("hottest_line", text);
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let bytecode = Bytecode::new();
    fs::write(&bytecode.dex, b"dex\nother").unwrap();
    let annotation = bytecode.annotate(&AnnotateRequest {
        sources: Vec::new(),
        ..bytecode.request("steps")
    });
    insta::assert_snapshot!("missing", bytecode.text(&annotation, columns(160)));
}

#[test]
fn the_dex_file_is_found_by_its_content_wherever_the_user_says() {
    let bytecode = Bytecode::new();
    fs::remove_file(&bytecode.dex).unwrap();
    let elsewhere = bytecode.fixture.dir.path().join("elsewhere/a/b");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("first.dex"), &DEX[..0x70]).unwrap();
    fs::write(elsewhere.join("renamed.dex"), DEX).unwrap();
    let names = NameOptions {
        symbols: vec![bytecode.fixture.dir.path().join("elsewhere")],
        ..NameOptions::default()
    };
    let profile = bytecode.fixture.profile(&options(names));
    let found = one(annotate(&profile, &bytecode.request("steps")).unwrap());
    let file = found.code_file.unwrap();
    assert!(file.ends_with("elsewhere/a/b/renamed.dex"), "{file}");
}

#[test]
fn json_has_each_instructions_samples_and_keeps_to_its_schema() {
    let bytecode = Bytecode::new();
    let annotation = json(&bytecode.annotated("steps"));
    let schema = include_str!("../../../schema/annotate.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    valid(&schema, &schema, &annotation).unwrap();
    let mut wrong = annotation.clone();
    wrong["files"][0]["lines"][0]["line"] = "1".into();
    assert!(valid(&schema, &schema, &wrong).is_err());
    let method = &annotation["method"];
    assert_eq!(
        (&method["self"], &method["total"], &method["approximate"]),
        (&80.into(), &80.into(), &4.into())
    );
    let [file] = &annotation["files"].as_array().unwrap()[..] else {
        panic!("{annotation}");
    };
    let mut lines = Vec::new();
    let mut found = Vec::new();
    for line in file["lines"].as_array().unwrap() {
        if line["total"].as_u64().is_some_and(|total| total > 0) {
            lines.push((
                line["line"].clone(),
                line["self"].clone(),
                line["total"].clone(),
            ));
        }
        for instruction in line["instructions"].as_array().into_iter().flatten() {
            if instruction["total"] != 0 {
                let row = ["pc", "self", "total"].map(|key| instruction[key].as_u64().unwrap());
                found.push(row);
            }
        }
    }
    let expected = [(100, 4, 4), (116, 70, 76), (119, 6, 6)];
    let expected = expected.map(|(line, own, total)| (line.into(), own.into(), total.into()));
    assert_eq!(lines, expected);
    assert_eq!(found, [[0, 4, 4], [4, 50, 56], [9, 20, 26], [0x34, 6, 6]]);
}

#[test]
fn a_method_is_meant_by_its_name_a_part_of_it_or_an_expression() {
    let bytecode = Bytecode::new();
    let profile = bytecode.fixture.profile(&options(NameOptions::default()));
    let name = |method: Option<&str>| {
        let request = AnnotateRequest {
            method: method.map(str::to_owned),
            ..AnnotateRequest::default()
        };
        match annotate(&profile, &request).unwrap() {
            Annotated::Method(found) => found.method.name,
            Annotated::Candidates(several) => format!("{} methods", several.methods.len()),
        }
    };
    assert_eq!(name(None), "org.example.corpus.Lines.steps");
    for (method, expected) in [
        (
            "org.example.corpus.Lines.steps",
            "org.example.corpus.Lines.steps",
        ),
        ("Lines.step", "org.example.corpus.Lines.steps"),
        ("^org.*Lines.*ps$", "org.example.corpus.Lines.steps"),
        ("0x1134", "org.example.corpus.Lines.steps"),
        ("corpus", "2 methods"),
        ("org.*s$", "2 methods"),
    ] {
        assert_eq!(name(Some(method)), expected, "{method}");
    }
    let request = |method: &str| AnnotateRequest {
        method: Some(method.to_owned()),
        ..AnnotateRequest::default()
    };
    let error = annotate(&profile, &request("nowhere"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("Lines.steps, org.example"), "{error}");
    let Annotated::Candidates(several) = annotate(&profile, &request("corpus")).unwrap() else {
        panic!("one method");
    };
    let mut out = Vec::new();
    write_candidates(&several, &mut out).unwrap();
    insta::assert_snapshot!("candidates", String::from_utf8(out).unwrap());
}
