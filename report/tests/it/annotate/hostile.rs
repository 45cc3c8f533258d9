//! Checks that hostile recordings and sources are only shown as text, and that only files named by the user are read.

use super::*;

/// Returns true if a text consists of lines of printable characters.
fn is_harmless(text: &str) -> bool {
    let mut characters = text.chars();
    characters
        .all(|character| !varid_recording::terminal::is_command(character) || character == '\n')
}

#[test]
fn hostile_sources_are_printed_as_text() {
    let bytecode = Bytecode::new();
    let file = bytecode
        .sources
        .join("src/main/java/org/example/corpus/Lines.java");
    let mut lines: Vec<String> = source().lines().map(str::to_owned).collect();
    lines[99] = "\x1b]0;owned\x07\x1b[2J\u{9b}31m \u{202e}right to left".to_owned();
    lines[115] = format!("{}end", "x".repeat(1 << 20));
    lines[116] = "\tcolumn\t\u{1f600}".to_owned();
    fs::write(&file, lines.join("\r\n")).unwrap();
    let annotation = bytecode.annotated("steps");
    for width in [None, Some(20), Some(80), Some(160), Some(400)] {
        let look = AnnotationText {
            width,
            colour: false,
        };
        let text = text(&annotation, look);
        assert!(is_harmless(&text), "{text:?}");
        assert!(
            text.contains("?]0;owned??[2J") || width.is_some_and(|width| width < 80),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() < 1000),
            "{text}"
        );
    }
    let whole = json(&annotation).to_string();
    assert!(whole.len() < 1 << 17, "{}", whole.len());
    assert!(!whole.contains("\\u001b"), "{whole}");
}

#[test]
fn what_is_no_text_is_not_shown() {
    let bytecode = Bytecode::new();
    let file = bytecode
        .sources
        .join("src/main/java/org/example/corpus/Lines.java");
    fs::write(&file, DEX).unwrap();
    let annotation = bytecode.annotated("steps");
    let text = text(&annotation, columns(80));
    assert!(text.contains("is no text"), "{text}");
    // The lines still have their numbers and instructions.
    assert!(text.contains("const/4 v0"), "{text}");
}

#[test]
fn a_recording_names_no_file_outside_of_the_folders_that_the_user_names() {
    let mut fixture = Fixture::new();
    let dir = fixture.dir.path().to_owned();
    let secret = dir.join("secret.c");
    fs::write(&secret, "TOP SECRET\n".repeat(50)).unwrap();
    let sources = dir.join("sources");
    fs::create_dir(&sources).unwrap();
    // A library whose line table has such names.
    let mut text = String::new();
    let names = [
        "../secret.c".to_owned(),
        "../../../../../../../../etc/passwd".to_owned(),
        secret.display().to_string(),
        "a/../../secret.c".to_owned(),
        "\x1b[31m/secret.c".to_owned(),
    ];
    for (number, name) in names.iter().enumerate() {
        text += &format!(
            "int f{number}(int n) {{\n# {} \"{name}\"\n    return n;\n}}\n",
            number + 3
        );
    }
    let (source, library) = (dir.join("built.c"), dir.join("built.so"));
    fs::write(&source, text).unwrap();
    crate::common::native::run(
        std::process::Command::new("cc")
            .args([
                "-O1",
                "-g",
                "-fPIC",
                "-shared",
                "-Wl,--build-id=0x1234",
                "-o",
            ])
            .args([&library, &source]),
    );
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
        path: "/gone/\x1b[2Jbuilt.so".into(),
        build_id: vec![0x12, 0x34],
    }));
    for offset in 0x1000..0x1200 {
        samples(&mut fixture, 1, Precision::Exact, &[CODE + offset]);
    }
    fixture.writer.finish().unwrap();
    let names = NameOptions {
        symbols: vec![dir.clone()],
        ..NameOptions::default()
    };
    let profile = fixture.profile(&options(names));
    for number in 0..5 {
        let request = AnnotateRequest {
            method: Some(format!("f{number}")),
            sources: vec![sources.clone()],
            ..AnnotateRequest::default()
        };
        let annotation = one(annotate(&profile, &request).unwrap());
        let shown = super::text(&annotation, columns(160)) + &json(&annotation).to_string();
        assert!(
            !shown.contains("TOP SECRET") && !shown.contains("root:"),
            "{shown}"
        );
        assert!(
            is_harmless(&super::text(&annotation, columns(80))),
            "{shown:?}"
        );
        assert!(shown.contains("no source of"), "{shown}");
    }
}
