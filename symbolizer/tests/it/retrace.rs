//! Compares names, lines and inlined frames with ProGuard's own retrace.

use crate::common;

use varid_symbolizer::Frame;
use varid_symbolizer::retrace::{Mapping, Position};

type Row = (String, Option<u32>);

fn row(frame: &Frame<'_>) -> Row {
    let line = frame.location.as_ref().map(|location| location.line);
    (frame.function.to_string(), line)
}

fn rows(frames: &[Frame<'_>]) -> Vec<Row> {
    frames.iter().map(row).collect()
}

/// Parses ProGuard's `at org.example.Main.f(Main.java:7)`.
fn retraced(line: &str) -> (Row, &str) {
    let (function, rest) = line
        .trim()
        .strip_prefix("at ")
        .unwrap()
        .split_once('(')
        .unwrap();
    let (file, line) = rest.strip_suffix(')').unwrap().split_once(':').unwrap();
    ((function.to_owned(), Some(line.parse().unwrap())), file)
}

/// The functions in ProGuard's output for a frame without a line. Each line only has the part that differs from the line above, below that
/// part.
fn functions(answer: &str) -> Vec<String> {
    let mut functions: Vec<String> = Vec::new();
    for line in answer.lines().skip(1) {
        let place = line.trim_start_matches('\t').split('(').next().unwrap();
        let own = place.trim_start();
        functions.push(match (own.strip_prefix("at "), functions.last()) {
            (Some(function), _) => function.to_owned(),
            (None, Some(before)) => {
                let same = place.len() - own.len() - "at ".len();
                format!("{}{own}", &before[..same])
            }
            (None, None) => panic!("{answer}"),
        });
    }
    functions
}

#[test]
fn every_frame_is_what_proguard_s_retrace_says() {
    let folder = common::fixtures().join("retrace");
    let (mut equal, mut outside, mut unknown) = (0, 0, 0);
    for kind in ["optimized", "overloaded", "merged"] {
        let read = |suffix: &str| {
            std::fs::read_to_string(folder.join(format!("{kind}.{suffix}"))).unwrap()
        };
        let mapping = Mapping::parse(read("mapping").into_bytes()).unwrap();
        assert_eq!(mapping.skipped(), 0);
        let answers = read("retraced");
        let mut answers = answers.split("frame ").skip(1);
        for frame in read("frames").lines() {
            let [class, method, line] = frame.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let answer = answers.next().unwrap();
            if line == "?" {
                let theirs = functions(answer);
                let ours = mapping.alternatives(class, method, None, None);
                let ours = rows(&ours.concat());
                // Its output includes methods that were inlined elsewhere.
                assert!(
                    ours.iter()
                        .all(|(name, line)| theirs.contains(name) && line.is_none()),
                    "{kind}: {frame}: {ours:?}, {theirs:?}"
                );
                if let [only] = theirs.as_slice() {
                    assert_eq!(ours, [(only.clone(), None)], "{kind}: {frame}");
                }
                unknown += 1;
                continue;
            }
            let line: u32 = line.parse().unwrap();
            let theirs: Vec<_> = answer.lines().skip(1).map(retraced).collect();
            let ours = mapping.alternatives(class, method, Some(Position::Line(line)), None);
            let ours: Vec<&Frame<'_>> = ours.iter().flatten().collect();
            let name = format!("{}.{method}", mapping.class(class).unwrap());
            if ours.iter().all(|frame| frame.location.is_none()) {
                // The method does not contain the line. Its output keeps the new name and the line.
                assert_eq!(theirs[0].0, (name, Some(line)), "{kind}: {frame}");
                outside += 1;
                continue;
            }
            let files = ours
                .iter()
                .map(|frame| frame.location.as_ref().unwrap().file.as_ref());
            let ours: Vec<_> = ours.iter().map(|frame| row(frame)).zip(files).collect();
            // Its output repeats the frame for an abstract method of the same name, which has no lines.
            let mut theirs = theirs;
            theirs.dedup();
            assert_eq!(ours, theirs, "{kind}: {frame}");
            equal += 1;
        }
        assert!(answers.next().is_none());
    }
    println!(
        "{equal} frames equal, {outside} lines that are in no method, {unknown} without a line"
    );
    assert!(equal > 150 && outside > 100 && unknown > 30);
}

/// The source file of a class for which the mapping has none. `kotlin.trace` combines each kind of class with each kind of file.
#[test]
fn source_files_are_those_of_r8_s_retrace() {
    let folder = common::fixtures().join("retrace");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let mapping = Mapping::parse(read("kotlin.mapping").into_bytes()).unwrap();
    let (trace, retraced) = (read("kotlin.trace"), read("kotlin.retraced"));
    let lines = trace.lines().flat_map(|line| mapping.retrace(line));
    let ours: Vec<String> = lines.collect();
    assert_eq!(ours, retraced.lines().collect::<Vec<_>>());
    assert!(ours.len() > 50);
}

const R8: &str = r#"# compiler: R8
# {"id":"com.android.tools.r8.mapping","version":"2.2"}
org.example.Main -> a.a:
# {"id":"sourceFile","fileName":"Main.kt"}
    int count -> a
    1:2:void org.example.Inner.in():30:31 -> a
    1:2:void mid(int):12 -> a
    1:2:void run():7:7 -> a
    3:3:void run():9:9 -> a
    0:65535:int only(int):40:40 -> b
    void over(int) -> c
    void over(org.example.Inner[],int) -> c
    void other(int) -> c
    # {"id":"com.android.tools.r8.residualsignature","signature":"()V"}
    1:1:void org.example.Inner.bridged():33:33 -> d
    1:1:void lambda$run$0():0 -> d
    # {"id":"com.android.tools.r8.synthesized"}
    5:7:void wide():10:40 -> e
    4:4:void early():3:3 -> f
    5:5:void late():4:4 -> f
org.example.Inner -> a.b:
# {"id":"sourceFile","fileName":"Inner.java"}
    1:1:void in():30:30 -> a
"#;

#[test]
fn r8_s_notes_and_ranges_are_followed() {
    let mapping = Mapping::parse(R8.into()).unwrap();
    let ask = |method: &str, line: Option<u32>, params| {
        rows(&mapping.frames("a.a", method, line.map(Position::Line), params))
    };
    let at = |name: &str, line| (format!("org.example.{name}"), line);
    assert_eq!(mapping.skipped(), 0);
    assert_eq!(mapping.class("a.b"), Some("org.example.Inner"));
    // Three methods at one line, each in its own file.
    let inlined = [
        at("Inner.in", Some(31)),
        at("Main.mid", Some(12)),
        at("Main.run", Some(7)),
    ];
    assert_eq!(ask("a", Some(2), None), inlined);
    let files: Vec<_> = mapping
        .frames("a.a", "a", Some(Position::Line(2)), None)
        .into_iter()
        .map(|frame| frame.location.unwrap().file.into_owned())
        .collect();
    assert_eq!(files, ["Inner.java", "Main.kt", "Main.kt"]);
    assert_eq!(ask("a", Some(3), None), [at("Main.run", Some(9))]);
    // Without a line, or with a line that the method does not have, the method is known, but not what was inlined.
    assert_eq!(ask("a", None, None), [at("Main.run", None)]);
    assert_eq!(ask("a", Some(99), None), [at("Main.run", None)]);
    for line in [None, Some(0), Some(1234)] {
        assert_eq!(ask("b", line, None), [at("Main.only", Some(40))]);
    }
    // Overloads have the same obfuscated name. A method with another original name is ambiguous, and its parameters were removed.
    assert_eq!(ask("c", None, None), []);
    assert_eq!(mapping.alternatives("a.a", "c", None, None).len(), 2);
    assert_eq!(ask("c", None, Some("a.b[], int")), [at("Main.over", None)]);
    assert_eq!(ask("c", None, Some("")), [at("Main.other", None)]);
    assert_eq!(ask("c", None, Some("int")), [at("Main.over", None)]);
    // Synthesized methods are left out as long as another one remains.
    assert_eq!(ask("d", Some(1), None), [at("Inner.bridged", Some(33))]);
    // A range of three lines cannot map to 31 lines.
    assert_eq!(ask("e", Some(6), None), [at("Main.wide", None)]);
    assert_eq!(ask("f", Some(5), None), [at("Main.late", Some(4))]);
    assert_eq!(ask("f", Some(6), None), []);
    // A member that is not listed was not renamed. A class that is not in the file is unknown.
    assert_eq!(
        ask("toString", Some(5), None),
        [at("Main.toString", Some(5))]
    );
    assert!(mapping.frames("a.c", "a", None, None).is_empty());
}

#[test]
fn a_dex_pc_finds_ranges_and_is_never_shown_as_a_line() {
    let text = "# compiler: R8\nA -> a:\n    0:9:void far():7:7 -> a\n    void bar() -> b\n    1:9:void same() -> c\n";
    let mapping = Mapping::parse(text.into()).unwrap();
    let ask = |method, place| rows(&mapping.frames("a", method, Some(place), None));
    for (method, name, pc, line) in [
        // A correct line that happens to equal the pc.
        ("a", "A.far", Some(7), Some(7)),
        ("b", "A.bar", None, Some(7)),
        ("c", "A.same", None, Some(7)),
        ("kept", "A.kept", None, Some(7)),
    ] {
        assert_eq!(ask(method, Position::Pc(7)), [(name.to_owned(), pc)]);
        assert_eq!(ask(method, Position::Line(7)), [(name.to_owned(), line)]);
    }
}

#[test]
fn a_residual_signature_is_of_all_ranges_of_its_method() {
    let note = "# {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"(La;I)V\"}";
    let text = format!(
        "# compiler: R8\nA -> a:\n    1:3:void foo(A):10:12 -> a\n    4:4:void foo(A):20:20 -> a\n    {note}\n    1:3:void foo(A,long):30:32 -> a\n"
    );
    let mapping = Mapping::parse(text.into()).unwrap();
    let ask =
        |line, params| rows(&mapping.frames("a", "a", Some(Position::Line(line)), Some(params)));
    let foo = |line| [("A.foo".to_owned(), Some(line))];
    assert_eq!(ask(2, "a,int"), foo(11));
    assert_eq!(ask(4, "a,int"), foo(20));
    assert_eq!(ask(2, "a,long"), foo(31));
}

/// ProGuard keeps the lines of the source. Two methods on the same line are not inlined into each other.
#[test]
fn methods_on_one_line_are_not_inlined_into_each_other() {
    let text = "A -> a:\n    5:5:void first():5:5 -> a\n    5:5:void second(int):5:5 -> a\n";
    let mapping = Mapping::parse(text.into()).unwrap();
    assert_eq!(
        mapping
            .alternatives("a", "a", Some(Position::Line(5)), None)
            .len(),
        2
    );
    assert!(
        mapping
            .frames("a", "a", Some(Position::Line(5)), None)
            .is_empty()
    );
    let frames = mapping.frames("a", "a", Some(Position::Line(5)), Some("int"));
    assert_eq!(rows(&frames), [("A.second".to_owned(), Some(5))]);
}

#[test]
fn what_is_no_mapping_file_says_so_and_broken_lines_are_skipped() {
    for text in [
        "",
        "# only a comment\n",
        "    void f() -> a\n",
        "PK\u{3}\u{4}",
    ] {
        let error = Mapping::parse(text.into()).unwrap_err().to_string();
        assert!(
            error.starts_with("mapping file, line 1: no line says"),
            "{error}"
        );
    }
    let text =
        "A -> a:\n    x:y:void f() -> a\n    void g(:3 -> b\n\0\n    1:1:void h():9:9 -> c\r\n";
    let mapping = Mapping::parse(text.into()).unwrap();
    assert_eq!(mapping.skipped(), 3);
    let frames = mapping.frames("a", "c", Some(Position::Line(1)), None);
    assert_eq!(rows(&frames), [("A.h".to_owned(), Some(9))]);
}
