//! Do perf, another reader and ours keep the events of a recording apart?

use crate::common;

use crate::common::{comm, dex_mapping, manifest, user_sample};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use varid_model::{Period, Rate};
use varid_recording::{
    EventDesc, Manifest, SessionEvents, SessionReader, SessionRecord, SessionWriter,
};

/// Cycles lead instructions, which are read with them; page faults stand alone.
fn three_events() -> Manifest {
    Manifest {
        events: SessionEvents {
            first: EventDesc::new("cycles:u", Rate::Frequency(997), 0, 0),
            others: vec![
                EventDesc {
                    leader: Some(0),
                    ..EventDesc::new("instructions:u", Rate::READ, 0, 1)
                },
                EventDesc::new("armv8_pmuv3/event=0x17/", Rate::Period(100), 8, 0x17),
            ],
        },
        ..manifest()
    }
}

fn period(event: usize) -> Period {
    Period::new(10 * (event as u64 + 1))
}

/// Samples of each event: one, two and three, of periods 10, 20 and 30.
fn record(dir: &Path) {
    let mut writer = SessionWriter::create(dir, three_events()).unwrap();
    writer.write(&comm(1_000, 42, "app")).unwrap();
    writer
        .write(&dex_mapping(1_000, 42, Path::new("/nowhere")))
        .unwrap();
    for (index, event) in [0, 1, 2, 1, 2, 2].into_iter().enumerate() {
        let SessionRecord::Sample(mut sample) =
            user_sample(2_000 + index as u64, 42, &[common::DEX])
        else {
            unreachable!()
        };
        sample.event = event;
        sample.period = period(event);
        writer.write(&SessionRecord::Sample(sample)).unwrap();
    }
    writer.finish().unwrap();
}

const EXPECTED: [(&str, u64); 3] = [
    ("armv8_pmuv3/event=0x17/", 3),
    ("cycles:u", 1),
    ("instructions:u", 2),
];

#[test]
fn our_reader_gives_each_sample_to_its_event() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let reader = SessionReader::open(dir.path()).unwrap();
    assert_eq!(reader.manifest().events, three_events().events);
    let mut counts = BTreeMap::new();
    for record in reader.records().unwrap() {
        if let SessionRecord::Sample(sample) = record.unwrap() {
            let name = &reader.manifest().events.get(sample.event).unwrap().name;
            assert_eq!(sample.period, period(sample.event));
            *counts.entry(name.clone()).or_insert(0) += 1;
        }
    }
    assert_eq!(
        counts,
        EXPECTED
            .map(|(name, count)| (name.to_owned(), count))
            .into()
    );
}

#[test]
fn perf_gives_each_sample_to_its_event_and_knows_the_group() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let perf = |args: &[&str]| {
        let mut perf = Command::new("perf");
        perf.args(args)
            .args(["-f", "-i"])
            .arg(dir.path().join("perf.data"));
        let output = perf.output().expect("perf, of linux-perf");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let mut counts = BTreeMap::new();
    for line in perf(&["script", "-F", "event,period", "-G"]).lines() {
        let mut words = line.split_whitespace();
        let (period, name) = (words.next().unwrap(), words.next().unwrap());
        let name = name.trim_end_matches(':').to_owned();
        let place = three_events()
            .events
            .iter()
            .position(|event| event.name == name);
        assert_eq!(period, (10 * (place.unwrap() + 1)).to_string(), "{line}");
        *counts.entry(name).or_insert(0) += 1;
    }
    assert_eq!(
        counts,
        EXPECTED
            .map(|(name, count)| (name.to_owned(), count))
            .into()
    );
    let header = perf(&["report", "--header-only"]);
    assert!(
        header.contains("group: {cycles:u,instructions:u}"),
        "{header}"
    );
}

#[test]
fn another_reader_finds_the_names_of_all_events() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let file = std::fs::File::open(dir.path().join("perf.data")).unwrap();
    let reader =
        linux_perf_data::PerfFileReader::parse_file(std::io::BufReader::new(file)).unwrap();
    let names: Vec<_> = reader
        .perf_file
        .event_attributes()
        .iter()
        .map(|event| event.name().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = three_events()
        .events
        .iter()
        .map(|event| event.name.clone())
        .collect();
    assert_eq!(names, expected);
}

#[test]
fn a_file_of_other_events_than_the_manifest_says_is_refused() {
    let (one, three) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(three.path());
    SessionWriter::create(one.path(), manifest())
        .unwrap()
        .finish()
        .unwrap();
    std::fs::copy(three.path().join("perf.data"), one.path().join("perf.data")).unwrap();
    let reader = SessionReader::open(one.path()).unwrap();
    let error = reader.records().unwrap_err().to_string();
    assert!(error.contains("session.json"), "{error}");
}
