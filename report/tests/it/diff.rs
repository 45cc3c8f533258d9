//! Checks that a comparison of sessions shows the differences, and its output format.

use std::process::Command;

use crate::{
    common::{APP_ID, DRAW, FIB, FOO, Fixture, KERNEL, READ, RUN, SQRT, elf, manifest, slot},
    exports::{HOSTILE, hostile},
    views::schema::valid,
};
use varid_model::{Layer, Rate};
use varid_recording::{EventDesc, ImportedFrom, Manifest, TargetKind};
use varid_report::{
    Diff, DiffView, Error, GroupBy, NamePattern, Options, OutputFormat, Pattern, Quantity,
    ReportTable, RowOrder, Side, TaskFilter, TextLimits, View,
};

/// Samples of draw, fib, sqrt, sys_read and library.
type Counts = [u64; 5];

/// A command's recording with these samples.
fn recording(counts: Counts) -> Fixture {
    recording_with(counts, |_| {})
}

fn recording_with(
    [draw, fib, sqrt, read, library]: Counts,
    change: impl Fn(&mut Manifest),
) -> Fixture {
    let mut manifest = manifest();
    manifest.target.kind = TargetKind::Command;
    manifest.target.value = "balls --rounds 10".into();
    change(&mut manifest);
    let mut fixture = Fixture::with(manifest);
    let main = (100, 100);
    fixture.samples(draw, main, &[DRAW, RUN + 1]);
    fixture.samples(fib, main, &[FIB, FIB + 1, RUN + 1]);
    fixture.samples(sqrt, main, &[SQRT, DRAW + 1, RUN + 1]);
    fixture.kernel_samples(read, main, &[READ, KERNEL + 0x11], &[RUN]);
    fixture.samples(library, (100, 101), &[FOO, RUN + 1]);
    fixture.writer.finish().unwrap();
    fixture
}

fn view(width: usize) -> DiffView {
    DiffView {
        view: View {
            text: TextLimits {
                width: Some(width),
                ..TextLimits::default()
            },
            ..View::default()
        },
        quantity: Quantity::Share,
        level: 0.05,
        by_symbol_only: false,
        flame_graph: false,
    }
}

fn diff(view: DiffView, options: &Options, [a, b]: [&[Fixture]; 2]) -> Result<Diff, Error> {
    let mut diff = Diff::new(view);
    for (side, fixtures) in [(Side::A, a), (Side::B, b)] {
        for fixture in fixtures {
            diff.add(side, &fixture.profile(options))?;
        }
    }
    Ok(diff)
}

/// The output, without the names of the temporary folders.
fn written(diff: &Diff, format: OutputFormat, [a, b]: [&[Fixture]; 2]) -> String {
    let mut out = Vec::new();
    diff.render(format, &mut out).unwrap();
    let mut text = String::from_utf8(out).unwrap();
    for (name, fixtures) in [("A", a), ("B", b)] {
        for (fixture, number) in fixtures.iter().zip(1..) {
            let folder = fixture.dir.path().to_str().unwrap();
            text = text.replace(folder, &format!("DIR-{name}{number}"));
        }
    }
    text
}

fn text(view: DiffView, sides: [&[Fixture]; 2]) -> String {
    let diff = diff(view, &Options::default(), sides).unwrap();
    written(&diff, OutputFormat::Text, sides)
}

fn json(view: DiffView, options: &Options, sides: [&[Fixture]; 2]) -> serde_json::Value {
    let diff = diff(view, options, sides).unwrap();
    serde_json::from_str(&written(&diff, OutputFormat::Json, sides)).unwrap()
}

fn row<'d>(document: &'d serde_json::Value, symbol: &str) -> &'d serde_json::Value {
    let mut rows = document["rows"].as_array().unwrap().iter();
    rows.find(|row| row["symbol"] == symbol)
        .unwrap_or_else(|| panic!("{symbol}: {document:#}"))
}

const BEFORE: Counts = [600, 200, 150, 50, 0];
/// draw takes 50 % longer, read is gone, library is new.
const AFTER: Counts = [900, 205, 148, 0, 30];

/// Three sessions on each side, whose fib varies by more than the sampling error.
fn several() -> [Vec<Fixture>; 2] {
    let before = [
        [600, 200, 150, 50, 0],
        [604, 310, 148, 51, 0],
        [598, 120, 151, 49, 0],
    ];
    let after = [
        [900, 330, 149, 50, 0],
        [903, 210, 152, 52, 0],
        [896, 340, 150, 49, 0],
    ];
    [before, after].map(|side| side.map(recording).into())
}

#[test]
fn two_sessions_in_text() {
    let (a, b) = ([recording(BEFORE)], [recording(AFTER)]);
    for width in [80, 160] {
        let text = text(view(width), [&a, &b]);
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
        insta::assert_snapshot!(format!("two_{width}"), text);
    }
}

#[test]
fn several_sessions_in_text() {
    let [a, b] = several();
    for width in [80, 160] {
        insta::assert_snapshot!(format!("several_{width}"), text(view(width), [&a, &b]));
        let absolute = DiffView {
            quantity: Quantity::Absolute,
            ..view(width)
        };
        insta::assert_snapshot!(
            format!("several_absolute_{width}"),
            text(absolute, [&a, &b])
        );
    }
}

#[test]
fn small_rows_are_folded_on_a_terminal_unless_they_are_significant() {
    let a = [recording([10_000, 3, 4, 5, 0])];
    let b = [recording([10_000, 4, 3, 5, 40])];
    let mut view = view(100);
    view.view.text.fold_below = 0.5;
    insta::assert_snapshot!("folded", text(view, [&a, &b]));
}

#[test]
fn tables_of_all_kinds_in_csv() {
    let (a, b) = ([recording(BEFORE)], [recording(AFTER)]);
    let csv = |by| {
        let mut view = view(80);
        view.view.table = ReportTable::by(by);
        let diff = diff(view, &Options::default(), [&a, &b]).unwrap();
        written(&diff, OutputFormat::Csv, [&a, &b])
    };
    insta::assert_snapshot!("symbols_csv", csv(GroupBy::Symbol));
    insta::assert_snapshot!("threads_csv", csv(GroupBy::Thread));
    for by in [
        GroupBy::Image,
        GroupBy::Line,
        GroupBy::Process,
        GroupBy::Service,
        GroupBy::Layer,
    ] {
        let csv = csv(by);
        let mut lines = csv.lines();
        let columns = lines.next().unwrap().split(',').count();
        let all = lines.clone().map(|line| {
            assert_eq!(line.split(',').count(), columns, "{csv}");
            line.split(',')
                .find_map(|cell| cell.parse::<u64>().ok())
                .unwrap()
        });
        // No sample is lost or counted twice.
        assert_eq!(all.sum::<u64>(), 1000, "{csv}");
    }
}

#[test]
fn json_keeps_to_its_schema() {
    let schema = include_str!("../../schema/diff.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let [a, b] = several();
    for by in [
        GroupBy::Image,
        GroupBy::Symbol,
        GroupBy::Line,
        GroupBy::Thread,
        GroupBy::Process,
        GroupBy::Service,
        GroupBy::Layer,
    ] {
        for quantity in [Quantity::Share, Quantity::Absolute] {
            let mut view = DiffView {
                quantity,
                ..view(80)
            };
            view.view.table = ReportTable::by(by);
            let document = json(view, &Options::default(), [&a, &b]);
            valid(&schema, &schema, &document).unwrap_or_else(|wrong| panic!("{by:?}: {wrong}"));
        }
    }
    let document = json(view(80), &Options::default(), [&a[..1], &b[..1]]);
    valid(&schema, &schema, &document).unwrap();
    assert_eq!(document["layers"].as_array().unwrap().len(), 3);
}

#[test]
fn a_change_has_its_sign_and_size_and_what_is_new_or_gone_is_there() {
    let (a, b) = ([recording(BEFORE)], [recording(AFTER)]);
    let document = json(view(80), &Options::default(), [&a, &b]);
    let draw = row(&document, "org.example.Balls.draw");
    let points = draw["points"].as_f64().unwrap();
    assert!((points - (900.0 / 12.83 - 60.0)).abs() < 1e-5, "{draw}");
    assert_eq!(draw["absolute_change"], 300.0);
    assert_eq!(draw["significant"], true);
    let (read, library) = (row(&document, "sys_read"), row(&document, "libfoo.so+0x?"));
    assert_eq!(
        (&read["a_samples"], &read["b_samples"]),
        (&50.into(), &0.into())
    );
    assert_eq!(
        (&library["a_samples"], &library["b_samples"]),
        (&0.into(), &30.into())
    );
    assert_eq!(
        (&read["significant"], &library["significant"]),
        (&true.into(), &true.into())
    );
    // A share that only falls because another one grows has the same absolute value.
    let of_fib = |quantity| {
        let view = DiffView {
            quantity,
            ..view(80)
        };
        let document = json(view, &Options::default(), [&a, &b]);
        row(&document, "org.example.Balls.fib(int)")["significant"].clone()
    };
    assert_eq!(of_fib(Quantity::Share), true);
    assert_eq!(of_fib(Quantity::Absolute), serde_json::Value::Null);
    let total = &document["absolute"];
    assert_eq!((&total["a"], &total["b"]), (&1000.0.into(), &1283.0.into()));
    assert_eq!(
        (&total["per"], &total["unit"]),
        (&"run".into(), &"milliseconds".into())
    );
}

#[test]
fn what_varies_from_session_to_session_is_no_change() {
    let [a, b] = several();
    let significant = |sides: [&[Fixture]; 2]| {
        let document = json(view(80), &Options::default(), sides);
        let rows = document["rows"].as_array().unwrap().iter();
        let rows = rows.filter(|row| row["significant"] == true);
        let names = rows.map(|row| row["symbol"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let fib = "org.example.Balls.fib(int)".to_owned();
    assert!(significant([&a[2..], &b[2..]]).contains(&fib));
    assert!(!significant([&a, &b]).contains(&fib));
    let document = json(view(80), &Options::default(), [&a, &b]);
    assert_eq!(document["tested_by"], "session");
}

#[test]
fn the_same_few_samples_in_each_session_of_a_side_are_no_change() {
    let [a, b] = [0, 2].map(|library| {
        [
            recording([600, 0, 0, 0, library]),
            recording([600, 0, 0, 0, library]),
        ]
    });
    let mut view = view(80);
    view.level = 0.04;
    let document = json(view, &Options::default(), [&a, &b]);
    let library = row(&document, "libfoo.so+0x?");
    assert_eq!(
        (&library["p"], &library["significant"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    let [a, b] = [0, 5].map(|library| {
        [
            recording([600, 0, 0, 0, library]),
            recording([600, 0, 0, 0, library]),
        ]
    });
    let document = json(self::view(80), &Options::default(), [&a, &b]);
    // 2 of 2^10, not 0 as in a test by session without variance.
    let p = row(&document, "libfoo.so+0x?")["p"].as_f64().unwrap();
    assert!((0.001..0.004).contains(&p), "{p}");
}

#[test]
fn a_method_that_moved_is_the_same_row() {
    let a = [recording([100, 0, 0, 0, 0])];
    let mut moved = Fixture::new();
    let slots = vec![
        slot(0x1000, "org.example.Balls.added"),
        slot(0x1100, "org.example.Balls.run"),
        slot(0x1200, "org.example.Balls.draw"),
    ];
    elf(&moved.writer.symbols().join("app.elf"), &APP_ID, slots);
    moved.samples(100, (100, 100), &[FIB, RUN + 1]);
    moved.writer.finish().unwrap();
    let document = json(view(80), &Options::default(), [&a, &[moved]]);
    let draw = row(&document, "org.example.Balls.draw");
    assert_eq!(
        (&draw["a_samples"], &draw["b_samples"]),
        (&100.into(), &100.into())
    );
    // One side is not a command.
    assert_eq!(document["absolute"]["per"], "second");
}

#[test]
fn filters_choose_what_is_compared_and_what_the_total_is_of() {
    let (a, b) = ([recording(BEFORE)], [recording(AFTER)]);
    let options = Options {
        tasks: TaskFilter {
            thread: Some(Pattern::new("Binder*")),
            ..TaskFilter::default()
        },
        ..Options::default()
    };
    let error = diff(view(80), &options, [&a, &b]).unwrap_err().to_string();
    assert!(error.contains("by --thread Binder*"), "{error}");
    let total = |symbol: Option<&str>, layer, order| {
        let mut view = view(80);
        view.view.code.symbol = symbol.map(|symbol| NamePattern::new(symbol).unwrap());
        view.view.code.layer = layer;
        view.view.order = order;
        let diff = diff(view, &Options::default(), [&a, &b]).unwrap();
        let total = diff.total().unwrap();
        (total.a.value, total.b.value, total.is_slower(5.0, 0.05))
    };
    let own = RowOrder::Own;
    assert_eq!(total(None, None, own), (1000.0, 1283.0, true));
    assert_eq!(total(Some(r"\.draw$"), None, own), (600.0, 900.0, true));
    assert_eq!(
        total(Some(r"\.draw$"), None, RowOrder::Total),
        (750.0, 1048.0, true)
    );
    assert_eq!(total(Some(r"\.fib\("), None, own), (200.0, 205.0, false));
    assert_eq!(total(None, Some(Layer::Kernel), own), (50.0, 0.0, false));
    // The same increase, but within chance.
    let small = [[12, 0, 0, 0, 0], [14, 0, 0, 0, 0]].map(recording);
    let diff = diff(view(80), &Options::default(), [&small[..1], &small[1..]]).unwrap();
    let total = diff.total().unwrap();
    assert!(total.percent().unwrap() > 16.0 && !total.is_slower(5.0, 0.05));
}

#[test]
fn imported_recordings_are_no_whole_runs_of_commands() {
    // perf record -a -- sleep 10, and sleep 60.
    let imported = [(100, 10), (600, 60)].map(|(samples, seconds)| {
        recording_with([samples, 0, 0, 0, 0], |manifest| {
            manifest.imported = Some(ImportedFrom {
                path: "perf.data".into(),
                format: "perf-data".into(),
                writer: "perf".into(),
            });
            manifest.duration_ns = seconds * 1_000_000_000;
        })
    });
    let diff = diff(
        view(80),
        &Options::default(),
        [&imported[..1], &imported[1..]],
    )
    .unwrap();
    let total = diff.total().unwrap();
    assert!(total.percent().unwrap().abs() < 0.01, "{total:?}");
    assert!(!total.is_slower(5.0, 0.05));
}

#[test]
fn sessions_that_cannot_be_compared_are_refused_with_the_reason() {
    let good = || recording([100, 0, 0, 0, 0]);
    let mut manifest = manifest();
    manifest.events.first = EventDesc::new("cycles", Rate::Frequency(997), 1, 0);
    let mut cycles = Fixture::with(manifest);
    cycles.samples(10, (100, 100), &[DRAW, RUN + 1]);
    cycles.writer.finish().unwrap();
    let error = diff(view(80), &Options::default(), [&[good()], &[cycles]]).unwrap_err();
    assert!(matches!(error, Error::OtherEvent { .. }), "{error}");

    let lossy = [Fixture::full()];
    let shares = json(view(80), &Options::default(), [&[good()], &lossy]);
    let reason = shares["not_absolute"].as_str().unwrap();
    assert!(reason.contains("lost 6.5 %"), "{reason}");
    let absolute = DiffView {
        quantity: Quantity::Absolute,
        ..view(80)
    };
    let diff = diff(absolute, &Options::default(), [&[good()], &lossy]).unwrap();
    let refused = diff
        .render(OutputFormat::Text, &mut Vec::new())
        .unwrap_err();
    assert!(matches!(refused, Error::NotAbsolute(_)), "{refused}");
    assert!(matches!(diff.total(), Err(Error::NotAbsolute(_))));
    let empty = Diff::new(view(80));
    assert!(matches!(empty.total(), Err(Error::NoSessions)));
}

fn page(options: &Options, sides: [&[Fixture]; 2]) -> String {
    let view = DiffView {
        flame_graph: true,
        ..view(80)
    };
    let diff = diff(view, options, sides).unwrap();
    let mut page = Vec::new();
    diff.write_html(&mut page).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &page).unwrap();
    let oracle = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/oracle/html_report.py"
    );
    let mut python = Command::new("python3");
    let output = python.args(["-B", oracle, "--policy"]).arg(file.path());
    let output = output.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(page).unwrap()
}

#[test]
fn a_page_has_the_tables_and_the_calling_contexts_of_both_sides() {
    let (a, b) = ([recording(BEFORE)], [recording(AFTER)]);
    let page = page(&Options::default(), [&a, &b]);
    let data = page.split("id=\"data\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let nodes: Vec<String> = data["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node.to_string())
        .collect();
    insta::assert_snapshot!("contexts", nodes.join("\n"));
    let tables = page.split("<h2>By layer").nth(1).unwrap();
    insta::assert_snapshot!("tables_html", tables.split("</main>").next().unwrap());
}

#[test]
fn hostile_names_are_names_and_nothing_else() {
    let sides = [[hostile()], [hostile()]];
    let [a, b] = &sides;
    let page = page(&Options::default(), [a, b]);
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(page.contains("\\u003cscript>alert(1)"), "{page}");
    for by in [GroupBy::Symbol, GroupBy::Thread] {
        let mut view = view(160);
        view.view.table = ReportTable::by(by);
        let diff = diff(view, &Options::default(), [a, b]).unwrap();
        for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::Csv] {
            let out = written(&diff, format, [a, b]);
            assert!(!out.contains('\u{1b}'), "{out}");
            assert!(
                format == OutputFormat::Json || !out.contains('\u{202e}'),
                "{out}"
            );
        }
        let csv = written(&diff, OutputFormat::Csv, [a, b]);
        assert!(!csv.contains(",=cmd"), "{csv}");
        if by == GroupBy::Thread {
            assert_eq!(csv.lines().count(), 1 + HOSTILE.len());
        }
    }
}

/// A program of this name, with these samples in each of two functions.
fn program(name: &str, [parse, print]: [u64; 2]) -> Fixture {
    const PROGRAM: u64 = 0x5500_0000_0000;
    let mut fixture = Fixture::bare();
    let path = fixture.dir.path().join(name);
    let id = [name.len() as u8; 20];
    elf(
        &path,
        &id,
        vec![slot(0x1000, "parse"), slot(0x1100, "print")],
    );
    fixture.map(100, PROGRAM, &path, &id);
    fixture.samples(parse, (100, 100), &[PROGRAM + 0x1010]);
    fixture.samples(print, (100, 100), &[PROGRAM + 0x1110]);
    fixture.writer.finish().unwrap();
    fixture
}

#[test]
fn a_program_of_another_name_is_compared_by_its_functions() {
    let (a, b) = (
        [program("app-1", [300, 100])],
        [program("app-20", [100, 300])],
    );
    let sides = [&a[..], &b[..]];
    let text = |by_symbol_only| {
        let view = DiffView {
            by_symbol_only,
            ..view(160)
        };
        let diff = diff(view, &Options::default(), sides).unwrap();
        written(&diff, OutputFormat::Text, sides)
    };
    let apart = text(false);
    let hint = "Note: app-1 of A and app-20 of B have functions of the same names: --by-symbol-only compares them";
    assert!(apart.contains(hint), "{apart}");
    assert_eq!(apart.matches("  parse\n").count(), 2, "{apart}");
    let together = text(true);
    assert!(!together.contains("Note: "), "{together}");
    let row = together
        .lines()
        .find(|line| line.ends_with("  parse"))
        .unwrap();
    let numbers: Vec<&str> = row.split_whitespace().take(3).collect();
    assert_eq!(numbers, ["75.00", "25.00", "-50.00"], "{together}");
    // With the same program on both sides, there is no hint.
    let same = [program("app-1", [100, 300])];
    let sides = [&a[..], &same[..]];
    let diff = diff(view(160), &Options::default(), sides).unwrap();
    let text = written(&diff, OutputFormat::Text, sides);
    assert!(!text.contains("--by-symbol-only"), "{text}");
}
