//! Checks the table of events side by side, with the ratios of a group.

use super::*;
use crate::common::manifest;
use varid_model::{Period, Precision, Rate, Tid};
use varid_recording::{CpuMode, EventDesc, Sample, SessionEvents, SessionRecord};
use varid_report::{CodeFilter, StackFilter};

/// The first three events are a group: 2,000 cycles with 3,000 instructions and 6 misses in `draw`, 1,000 of each and
/// 30 misses in `run`. Page faults belong to no group.
pub fn recorded() -> Fixture {
    let event = |name: &str, leader| EventDesc {
        leader,
        ..EventDesc::new(name, Rate::Period(1_000), 0, 0)
    };
    let mut manifest = manifest();
    manifest.events = SessionEvents {
        first: event("cycles:u", None),
        others: vec![
            event("instructions:u", Some(0)),
            event("cache-misses:u", Some(0)),
            event("page-faults", None),
        ],
    };
    let mut fixture = Fixture::with(manifest);
    for (address, counts) in [(DRAW, [2_000, 3_000, 6, 4]), (RUN, [1_000, 1_000, 30, 1])] {
        for (event, count) in counts.into_iter().enumerate() {
            let time = fixture.tick();
            fixture.write(&sample(event, time, address, count));
        }
    }
    fixture.writer.finish().unwrap();
    fixture
}

fn sample(event: usize, time: MonotonicNs, address: u64, period: u64) -> SessionRecord {
    SessionRecord::Sample(Sample {
        event,
        time,
        pid: Pid::new(100),
        tid: Tid::new(100),
        cpu: 0,
        period: Period::new(period),
        original_ip: Address::new(0x1234),
        interrupt: None,
        mode: CpuMode::User,
        uid: 0,
        frame: None,
        precision: Precision::Exact,
        kernel: Vec::new(),
        user: vec![Address::new(address)],
    })
}

fn events() -> View {
    View {
        table: ReportTable::EVENTS,
        ..View::default()
    }
}

#[test]
fn events_in_text() {
    let fixture = recorded();
    insta::assert_snapshot!(fixture.render(&Options::default(), &events(), OutputFormat::Text));
}

#[test]
fn ratios_take_events_of_one_group_and_only_samples_that_filters_choose() {
    let fixture = recorded();
    let ratios = |options: &Options, view: &View| -> Vec<_> {
        let report = json(&fixture, options, view);
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| {
            let number = |key: &str| row.get(key).and_then(serde_json::Value::as_f64);
            (
                number("period").unwrap(),
                number("per_cycle"),
                number("per_1000_instructions"),
            )
        })
        .collect()
    };
    let all = [
        (3_000.0, None, Some(750.0)),
        (4_000.0, Some(1.333_333), None),
        (36.0, None, Some(9.0)),
        (5.0, None, None),
    ];
    assert_eq!(ratios(&Options::default(), &events()), all);
    let of_run = [
        (1_000.0, None, Some(1_000.0)),
        (1_000.0, Some(1.0), None),
        (30.0, None, Some(30.0)),
        (1.0, None, None),
    ];
    let run = NamePattern::new(r"\.run$").unwrap();
    let view = View {
        code: CodeFilter {
            symbol: Some(run.clone()),
            ..CodeFilter::default()
        },
        ..events()
    };
    assert_eq!(ratios(&Options::default(), &view), of_run);
    let options = Options {
        stacks: StackFilter {
            focus: Some(run),
            ..StackFilter::default()
        },
        ..Options::default()
    };
    assert_eq!(ratios(&options, &events()), of_run);
}

#[test]
fn events_side_by_side_in_text() {
    let fixture = recorded();
    for (name, by, width) in [
        ("symbols_80", GroupBy::Symbol, 80),
        ("symbols_160", GroupBy::Symbol, 160),
        ("threads_160", GroupBy::Thread, 160),
    ] {
        let view = View {
            table: ReportTable::by(by),
            side_by_side: true,
            text: TextLimits {
                width: Some(width),
                ..TextLimits::default()
            },
            ..View::default()
        };
        let text = fixture.render(&Options::default(), &view, OutputFormat::Text);
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn a_row_has_the_shares_that_it_has_in_the_table_of_each_event() {
    let fixture = recorded();
    let side_by_side = View {
        table: ReportTable::by(GroupBy::Symbol),
        side_by_side: true,
        ..View::default()
    };
    let all = json(&fixture, &Options::default(), &side_by_side);
    let all = all["rows"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    for (place, name) in [
        "cycles:u",
        "instructions:u",
        "cache-misses:u",
        "page-faults",
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            event: Some(name.to_owned()),
            ..Options::default()
        };
        let one = json(&fixture, &options, &by(GroupBy::Symbol));
        for row in one["rows"].as_array().unwrap() {
            let same = |other: &&serde_json::Value| other["symbol"] == row["symbol"];
            let event = &all.iter().find(same).unwrap()["events"][place];
            assert_eq!(event["event"], name);
            for key in [
                "self",
                "total",
                "self_percent",
                "total_percent",
                "self_period",
            ] {
                assert_eq!(event[key], row[key], "{name} {key}");
            }
        }
    }
    let draw = all
        .iter()
        .find(|row| row["symbol"] == "org.example.Balls.draw");
    let draw = &draw.unwrap()["events"];
    assert_eq!(draw[1]["per_cycle"], 1.5);
    assert_eq!(draw[2]["per_1000_instructions"], 2.0);
    let csv = fixture.render(&Options::default(), &side_by_side, OutputFormat::Csv);
    let header = csv.lines().next().unwrap();
    assert!(
        header.starts_with("layer,image,symbol,cycles:u self,cycles:u total,"),
        "{header}"
    );
}

#[test]
fn the_event_that_is_shown_by_default_has_samples() {
    let mut manifest = manifest();
    let event = |name: &str| EventDesc::new(name, Rate::Period(1_000), 0, 0);
    manifest.events = SessionEvents {
        first: event("cpu_atom/cycles:Pu/"),
        others: vec![event("cpu_core/cycles:Pu/"), event("instructions")],
    };
    for (sampled, expected) in [
        (&[2, 1][..], "cpu_core/cycles:Pu/"),
        (&[], "cpu_atom/cycles:Pu/"),
    ] {
        let mut fixture = Fixture::with(manifest.clone());
        for event in sampled {
            let time = fixture.tick();
            fixture.write(&sample(*event, time, DRAW, 1));
        }
        fixture.writer.finish().unwrap();
        let report = json(&fixture, &Options::default(), &View::default());
        assert_eq!(report["event"], expected);
    }
}
