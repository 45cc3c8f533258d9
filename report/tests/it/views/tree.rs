//! Checks that call trees have every sample at its stack, and fit the terminal for any depth and names.

use super::*;
use crate::common::{APP_ID, ATTACH, FIB, READ, SQRT, elf, slot};
use proptest::{collection::vec, prelude::*};
use std::collections::BTreeMap;

use varid_report::{CodeFilter, TreeDirection};

fn tree(direction: TreeDirection, width: Option<usize>) -> View {
    View {
        table: ReportTable::tree(direction),
        text: TextLimits {
            width,
            missing: Some(0),
            ..TextLimits::default()
        },
        ..View::default()
    }
}

#[test]
fn trees_in_text() {
    let fixture = Fixture::full();
    for (name, direction, width) in [
        ("top_down_80", TreeDirection::TopDown, 80),
        ("top_down_160", TreeDirection::TopDown, 160),
        ("bottom_up_80", TreeDirection::BottomUp, 80),
    ] {
        let view = View {
            min_percent: 2.0,
            ..tree(direction, Some(width))
        };
        let text = fixture.render(&Options::default(), &view, OutputFormat::Text);
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn tree_in_csv() {
    let fixture = Fixture::full();
    let view = View {
        min_percent: 15.0,
        ..tree(TreeDirection::TopDown, None)
    };
    insta::assert_snapshot!(fixture.render(&Options::default(), &view, OutputFormat::Csv));
}

#[test]
fn a_tree_of_symbols_has_the_stacks_whose_leaf_they_are() {
    let fixture = Fixture::full();
    let view = View {
        code: CodeFilter {
            symbol: Some(NamePattern::new("^sys_read$").unwrap()),
            ..CodeFilter::default()
        },
        ..tree(TreeDirection::TopDown, None)
    };
    let report = json(&fixture, &Options::default(), &view);
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<_> = rows
        .iter()
        .map(|row| row["symbol"].as_str().unwrap())
        .collect();
    let expected = [
        "org.example.Balls.run",
        "org.example.Balls.draw",
        "org.example.Balls.nativeBlit",
        "libskia.so+0x?",
        "entry",
        "sys_read",
    ];
    assert_eq!(names, expected);
    assert!(rows.iter().all(|row| row["total_percent"] == 10.0));
}

/// Functions by their leaf address.
const FUNCTIONS: [(u64, &str); 5] = [
    (DRAW, "org.example.Balls.draw"),
    (RUN, "org.example.Balls.run"),
    (FIB, "org.example.Balls.fib(int)"),
    (SQRT, "java.lang.Math.sqrt"),
    (
        ATTACH,
        "art::Thread::Attach(char const*, bool, _jobject*, bool)",
    ),
];

/// Records a sample for each stack, outermost function first.
fn recorded(stacks: &[Vec<usize>]) -> Fixture {
    let mut fixture = Fixture::new();
    for stack in stacks {
        let frames = stack.iter().rev().enumerate();
        let frames = frames.map(|(depth, function)| FUNCTIONS[*function].0 + u64::from(depth > 0));
        fixture.samples(1, (100, 100), &frames.collect::<Vec<_>>());
    }
    fixture.writer.finish().unwrap();
    fixture
}

/// Total and own samples by path.
type Paths = BTreeMap<Vec<String>, (u64, u64)>;

/// Returns the paths of a tree in JSON, after comparing each node with its children.
fn paths(report: &serde_json::Value, own: &str) -> Paths {
    let number = |row: &serde_json::Value, key: &str| row[key].as_u64().unwrap();
    let rows = report["rows"].as_array().unwrap();
    let (mut path, mut paths) = (Vec::<String>::new(), Paths::new());
    for (place, row) in rows.iter().enumerate() {
        let depth = number(row, "depth");
        path.truncate(depth as usize);
        assert_eq!(path.len() as u64, depth, "{report}");
        path.push(row["symbol"].as_str().unwrap().to_owned());
        let below = rows[place + 1..].iter();
        let below = below.take_while(|row| number(row, "depth") > depth);
        let children = below.filter(|row| number(row, "depth") == depth + 1);
        let children: u64 = children.map(|row| number(row, "total")).sum();
        let share = (number(row, "total"), number(row, own));
        let sum = children + share.1 + number(row, "hidden_total");
        assert_eq!(share.0, sum, "{row} {report}");
        assert!(paths.insert(path.clone(), share).is_none(), "{report}");
    }
    paths
}

/// The expected paths of the stacks in this direction.
fn counted(stacks: &[Vec<usize>], direction: TreeDirection) -> Paths {
    let mut paths = Paths::new();
    for stack in stacks {
        let mut folded = stack.clone();
        if direction == TreeDirection::BottomUp {
            folded.reverse();
        }
        folded.dedup();
        let names: Vec<_> = folded
            .iter()
            .map(|function| FUNCTIONS[*function].1.to_owned())
            .collect();
        for len in 1..=names.len() {
            let share = paths.entry(names[..len].to_vec()).or_default();
            share.0 += 1;
            share.1 += u64::from(len == names.len());
        }
    }
    paths
}

#[test]
fn a_node_is_the_sum_of_its_children_and_of_the_stacks_that_end_there() {
    let cases = proptest::test_runner::Config::with_cases(32);
    let stacks = vec(vec(0..FUNCTIONS.len(), 1..7), 1..40);
    proptest!(cases, |(stacks in stacks, limit in 0.0..30.0_f64)| {
        let fixture = recorded(&stacks);
        for (direction, own) in [
            (TreeDirection::TopDown, "self"),
            (TreeDirection::BottomUp, "outermost"),
        ] {
            let whole = json(&fixture, &Options::default(), &tree(direction, None));
            let whole = paths(&whole, own);
            prop_assert_eq!(&whole, &counted(&stacks, direction));
            let view = View { min_percent: limit, ..tree(direction, None) };
            let large = paths(&json(&fixture, &Options::default(), &view), own);
            let is_large = |share: &(u64, u64)| share.0 as f64 * 100.0 / stacks.len() as f64 >= limit;
            let expected: Paths = whole.into_iter().filter(|(_, share)| is_large(share)).collect();
            prop_assert_eq!(&large, &expected);
        }
    });
}

#[test]
fn deep_stacks_and_long_and_hostile_names_stay_within_the_terminal() {
    let mut fixture = Fixture::new();
    let long = format!("{}\u{1b}[2J\u{202e}end", "org.example.Long".repeat(20));
    let slots = vec![slot(0x1000, &long), slot(0x1100, "run")];
    elf(&fixture.writer.symbols().join("app.elf"), &APP_ID, slots);
    // Two methods that call each other, and samples at many depths, so that there are also deep branches.
    for depth in [10, 40, 100, 3_000] {
        let frames: Vec<u64> = (0..depth)
            .map(|frame| if frame % 2 == 0 { DRAW + 1 } else { RUN + 1 })
            .collect();
        fixture.samples(10, (100, 100), &frames);
        fixture.kernel_samples(10, (100, 100), &[READ], &frames);
    }
    fixture.writer.finish().unwrap();
    for direction in [TreeDirection::TopDown, TreeDirection::BottomUp] {
        for width in [80, 160] {
            let view = tree(direction, Some(width));
            let text = fixture.render(&Options::default(), &view, OutputFormat::Text);
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
            let rows = text.split("\n\n").find(|part| part.starts_with("total %"));
            let rows = rows.unwrap().lines().collect::<Vec<_>>();
            let widest = rows.iter().map(|row| row.chars().count()).max();
            assert!(widest <= Some(width), "{text}");
            assert!(rows.iter().any(|row| row.contains("Long")), "{text}");
            assert!(rows.len() > 1_000, "{text}");
        }
        let report = json(&fixture, &Options::default(), &tree(direction, None));
        let rows = report["rows"].as_array().unwrap();
        let depth = |row: &serde_json::Value| row["depth"].as_u64();
        assert_eq!(rows.iter().map(depth).max().unwrap(), Some(999));
        assert_ne!(report["rows_hidden"], 0);
    }
}

#[test]
fn so_many_lines_of_a_tree_are_shown_and_the_others_counted() {
    let fixture = Fixture::full();
    let view = View {
        limit: Some(3),
        ..tree(TreeDirection::TopDown, None)
    };
    let report = json(&fixture, &Options::default(), &view);
    assert_eq!(report["rows"].as_array().unwrap().len(), 3);
    assert_ne!(report["rows_hidden"], 0);
    paths(&report, "self");
}
