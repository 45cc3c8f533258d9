//! Checks profiles of moved, killed and damaged sessions, and compares them with perf.

use std::{collections::BTreeMap, fs, process::Command};

use crate::common::{APP, DRAW, FIB, Fixture, RUN, SQRT};
use proptest::{collection::vec, prelude::*};
use varid_model::{Marker, MonotonicNs, Pid, Reason, Tid};
use varid_recording::remap::address_of;
use varid_recording::{SessionReader, SessionRecord};
use varid_report::{
    GroupBy, Options, OutputFormat, Profile, ReportTable, TaskFilter, View, WeightTable, render,
};

/// Own and total samples of every symbol of the two substitutes.
fn methods(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let view = View {
        table: ReportTable::by(GroupBy::Symbol),
        ..View::default()
    };
    let mut report = Vec::new();
    render(profile, &view, OutputFormat::Json, &mut report).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    let rows = report["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let name = row["symbol"].as_str().unwrap().to_owned();
            let [own, total] = ["self", "total"].map(|column| row[column].as_u64().unwrap());
            (name, (own, total))
        })
        .filter(|(name, _)| name.starts_with("org.") || name.starts_with("java."))
        .collect()
}

#[test]
fn perf_report_has_the_same_shares() {
    let fixture = Fixture::full();
    let output = Command::new("perf")
        .args([
            "report",
            "--stdio",
            "--children",
            "-g",
            "none",
            "--sort",
            "sym",
        ])
        .args([
            "-F",
            "overhead_children,overhead,sample,sym",
            "-t",
            ";",
            "-i",
        ])
        .arg(fixture.session.join("perf.data"))
        .output()
        .expect("this test needs perf: install the package linux-perf");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut theirs = BTreeMap::new();
    for line in text
        .lines()
        .filter(|line| line.contains("[.] org.") || line.contains("[.] java."))
    {
        let fields: Vec<_> = line.split(';').map(str::trim).collect();
        let percent = |field: &str| field.trim_end_matches('%').parse::<f64>().unwrap();
        // 100 samples with the same period, so percentages equal numbers of samples.
        let name = fields[3].trim_start_matches("[.] ").to_owned();
        let own: u64 = fields[2].parse().unwrap();
        assert_eq!(percent(fields[1]), own as f64, "{line}");
        theirs.insert(name, (own, percent(fields[0]).round() as u64));
    }
    assert_eq!(
        methods(&fixture.profile(&Options::default())),
        theirs,
        "{text}"
    );
    assert_eq!(theirs.len(), 5, "{text}");
}

#[test]
fn a_moved_session_keeps_its_names() {
    let fixture = Fixture::full();
    let before = methods(&fixture.profile(&Options::default()));
    let moved = fixture.dir.path().join("elsewhere");
    fs::rename(&fixture.session, &moved).unwrap();
    let session = SessionReader::open(&moved).unwrap();
    let profile = Profile::from_session(&session, &Options::default()).unwrap();
    assert_eq!(methods(&profile), before);
    assert!(before.contains_key("org.example.Balls.nativeBlit"));
}

#[test]
fn a_killed_session_counts_its_records_not_its_manifest() {
    let mut fixture = Fixture::new();
    fixture.samples(5, (100, 100), &[DRAW, RUN + 1]);
    fixture.writer.flush().unwrap();
    let profile = fixture.profile(&Options::default());
    assert_eq!(profile.recording.manifest.counts.samples, 0);
    let event = profile.event(None).unwrap();
    let samples = profile.weight(event.event).samples();
    assert_eq!((event.recorded, samples), (5, 5));
    let text = fixture.render(&Options::default(), &View::default(), OutputFormat::Text);
    assert!(text.contains("live or killed"), "{text}");
}

#[test]
fn a_damaged_session_is_reported_up_to_the_damage() {
    let mut fixture = Fixture::new();
    fixture.samples(5, (100, 100), &[DRAW]);
    fixture.writer.flush().unwrap();
    fixture.samples(5, (100, 100), &[DRAW]);
    fixture.writer.flush().unwrap();
    let at = fixture.writer.bytes_written();
    fixture.samples(1, (100, 100), &[DRAW]);
    fixture.writer.flush().unwrap();
    let path = fixture.session.join("perf.data");
    let mut bytes = fs::read(&path).unwrap();
    let size = usize::try_from(at).unwrap() + 6;
    bytes[size] = 3; // a record smaller than its header
    fs::write(&path, bytes).unwrap();
    let profile = fixture.profile(&Options::default());
    let note = format!("offset {at:#x}: a record smaller than its header");
    assert!(
        profile.recording.notes[0].contains(&note),
        "{:?}",
        profile.recording.notes
    );
    // No record before the damage is lost, whether a later one could precede it or not.
    assert_eq!(profile.event(None).unwrap().recorded, 10);
}

#[test]
fn an_exec_unmaps_and_a_fork_inherits() {
    let mut fixture = Fixture::new();
    let time = fixture.tick();
    fixture.write(&SessionRecord::Fork {
        time,
        pid: Pid::new(300),
        ppid: Pid::new(100),
        tid: Tid::new(300),
        ptid: Tid::new(100),
    });
    fixture.samples(2, (300, 300), &[FIB]);
    // It executes two shells, the first of which renames itself, and then its original program.
    for (exec, name) in [(true, "sh"), (false, "job"), (true, "sh"), (true, "balls")] {
        let time = fixture.tick();
        fixture.write(&SessionRecord::Comm {
            time,
            pid: Pid::new(300),
            tid: Tid::new(300),
            exec,
            name: name.to_owned(),
        });
        fixture.samples(1, (300, 300), &[FIB]);
    }
    fixture.writer.finish().unwrap();
    let options = Options {
        tasks: TaskFilter {
            pid: Some(Pid::new(300)),
            ..TaskFilter::default()
        },
        ..Options::default()
    };
    let profile = fixture.profile(&options);
    assert_eq!(methods(&profile)["org.example.Balls.fib(int)"], (2, 2));
    let rows = |by| {
        let view = View {
            table: ReportTable::by(by),
            ..View::default()
        };
        let csv = fixture.render(&options, &view, OutputFormat::Csv);
        let rows = csv.lines().map(str::to_owned).collect::<Vec<_>>();
        let header: Vec<_> = rows[0].split(',').map(str::to_owned).collect();
        let field = |row: &str, name| {
            let place = header.iter().position(|field| field == name);
            place
                .map_or("", |place| row.split(',').nth(place).unwrap())
                .to_owned()
        };
        let row = |row: &String| ["process", "thread", "self"].map(|name| field(row, name));
        rows[1..].iter().map(row).collect::<Vec<_>>()
    };
    let row =
        |process: &str, thread: &str, samples: &str| [process, thread, samples].map(str::to_owned);
    let processes = [
        row("balls", "", "3"),
        row("job", "", "2"),
        row("sh", "", "1"),
    ];
    assert_eq!(rows(GroupBy::Process), processes);
    let threads = [
        row("balls", "balls", "3"),
        row("job", "job", "1"),
        row("job", "sh", "1"),
        row("sh", "sh", "1"),
    ];
    assert_eq!(rows(GroupBy::Thread), threads);
}

#[test]
fn a_marker_is_in_the_table_of_images_only_as_a_leaf() {
    let images = |chain: &[u64]| {
        let mut fixture = Fixture::new();
        fixture.samples(1, (100, 100), chain);
        fixture.writer.finish().unwrap();
        let view = View {
            table: ReportTable::by(GroupBy::Image),
            ..View::default()
        };
        let csv = fixture.render(&Options::default(), &view, OutputFormat::Csv);
        csv.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let torn = address_of(Marker::Reason(Reason::TornFrames)).get();
    // A caller's address may be the first byte of a slot or a later one.
    for torn in [torn, torn + 1] {
        let below = images(&[DRAW, torn]);
        assert!(
            below.len() == 1 && below[0].contains("classes.dex"),
            "{below:?}"
        );
        let leaf = images(&[torn]);
        assert!(
            leaf.len() == 1 && leaf[0].starts_with("app,[marker],1,100.0"),
            "{leaf:?}"
        );
    }
}

#[test]
fn a_call_at_the_end_of_a_method_belongs_to_it() {
    let mut fixture = Fixture::new();
    // The last code unit of draw is a call, which returns to the first byte of run.
    fixture.samples(1, (100, 100), &[SQRT, APP + 0x1100]);
    // As a leaf, the same address belongs to run.
    fixture.samples(1, (100, 100), &[APP + 0x1100]);
    fixture.writer.finish().unwrap();
    let methods = methods(&fixture.profile(&Options::default()));
    assert_eq!(methods["org.example.Balls.draw"], (0, 1));
    assert_eq!(methods["org.example.Balls.run"], (1, 1));
}

#[test]
fn the_samples_of_a_profile_add_up_to_its_weights_and_those_of_two_parts_of_time_to_all() {
    let fixture = Fixture::full();
    let profile = fixture.profile(&Options {
        sample_table: true,
        ..Options::default()
    });
    let event = profile.event(None).unwrap().event;
    let samples = profile.samples.as_ref().unwrap();
    let times: Vec<_> = samples.iter().map(|sample| sample.time).collect();
    assert!(times.is_sorted() && times.len() == 100);
    let (first, end) = (times[0], MonotonicNs::new(u64::MAX));
    let rows = |weights: &WeightTable| {
        let rows = weights.sample_rows(event).map(|row| {
            let key = (row.task, row.stack.unwrap());
            (key, row.weight)
        });
        rows.collect::<BTreeMap<_, _>>()
    };
    assert_eq!(rows(&samples.weights(first..end)), rows(&profile.weights));
    let (early, late) = (first..times[30], times[30]..end);
    let (early, late) = (samples.weights(early), samples.weights(late));
    assert_eq!(early.sample_sum(event).samples(), 30);
    assert_eq!(late.sample_sum(event).samples(), 70);
    assert!(fixture.profile(&Options::default()).samples.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_recordings_make_reports(
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        // A recording with all kinds of records, damaged after the header.
        let fixture = Fixture::full();
        let path = fixture.session.join("perf.data");
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in damage {
            let at = 240 + at.index(bytes.len() - 240);
            bytes[at] = byte;
        }
        fs::write(&path, &bytes).unwrap();
        let session = SessionReader::open(&fixture.session).unwrap();
        let profile = Profile::from_session(&session, &Options::default()).unwrap();
        let tables = [GroupBy::Symbol, GroupBy::Line, GroupBy::Image, GroupBy::Layer, GroupBy::Thread, GroupBy::Process].map(ReportTable::by);
        for table in tables.into_iter().chain([ReportTable::OVERVIEW, ReportTable::CALLGRAPH]) {
            let view = View { table, ..View::default() };
            for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::Csv] {
                render(&profile, &view, format, &mut std::io::sink()).unwrap();
            }
        }
        let event = profile.event(None).unwrap();
        let weight = profile.weight(event.event).samples();
        prop_assert!(weight == event.recorded && weight <= 100);
    }
}
