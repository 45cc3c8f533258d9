//! Checks that a live profile follows a session while it is written, and ends with the values of a report.

use std::collections::BTreeMap;

use crate::common::{DRAW, FIB, Fixture, JNI, RUN, elf, slot};
use varid_model::{Layer, MonotonicNs};
use varid_recording::{ImageKind, SessionImage, SessionReader, remap};
use varid_report::{LiveProfile, LiveSpan, NameOptions, Options, Profile};

const START: (usize, LiveSpan, MonotonicNs) = (0, LiveSpan::SinceStart, MonotonicNs::MAX);

fn open(fixture: &Fixture) -> LiveProfile {
    LiveProfile::open(&fixture.session, &NameOptions::default()).unwrap()
}

fn follow(live: &mut LiveProfile, ended: bool) {
    live.refresh(ended).unwrap();
    while live.read(7) {}
}

/// Own and total samples of each method.
fn methods(live: &LiveProfile) -> BTreeMap<String, (u64, u64)> {
    let (event, span, now) = START;
    let mut methods = BTreeMap::new();
    for method in live.methods(event, span, now) {
        let entry: &mut (u64, u64) = methods.entry(method.name.to_owned()).or_default();
        entry.0 += method.share.own.samples as u64;
        entry.1 += method.share.total.samples as u64;
    }
    methods
}

/// The same values, computed from each stack of the whole profile.
fn reported(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let mut methods: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let event = profile.event(None).unwrap().event;
    for row in profile.weights.sample_rows(event) {
        let samples = row.weight.samples();
        let frames = row.stack.into_iter();
        let frames = frames.flat_map(|stack| profile.stacks.frames_of(stack));
        let names = frames.filter_map(|frame| profile.frames.symbol_of(frame));
        let mut seen = Vec::new();
        for (depth, symbol) in names.enumerate() {
            let entry = methods.entry(symbol.name.clone()).or_default();
            if depth == 0 {
                entry.0 += samples;
            }
            if !seen.contains(&(symbol.image, &symbol.name)) {
                seen.push((symbol.image, &symbol.name));
                entry.1 += samples;
            }
        }
    }
    methods
}

#[test]
fn a_complete_session_has_the_shares_of_its_report() {
    let fixture = Fixture::full();
    let mut live = open(&fixture);
    follow(&mut live, true);
    let expected = reported(&fixture.profile(&Options::default()));
    assert_eq!(methods(&live), expected);
    assert_eq!(expected["org.example.Balls.draw"], (43, 71));
    assert_eq!((live.progress().samples, live.progress().lost), (100, 7));
    let threads = live
        .threads(0, LiveSpan::SinceStart, MonotonicNs::MAX)
        .map(|thread| (thread.process.unwrap().to_owned(), thread.name.to_owned()))
        .collect::<Vec<_>>();
    let name = |process: &str, thread: &str| (process.to_owned(), thread.to_owned());
    let expected = [
        name("balls", "balls"),
        name("balls", "Binder:1"),
        name("other", "other"),
    ];
    assert_eq!(threads, expected);
}

#[test]
fn only_what_was_added_is_read_and_what_may_be_overtaken_waits() {
    let mut fixture = Fixture::new();
    let mut live = open(&fixture);
    let mut seen = Vec::new();
    for _ in 0..4 {
        fixture.samples(10, (100, 100), &[DRAW, RUN + 1]);
        follow(&mut live, false);
        seen.push(live.progress().samples);
        fixture.writer.flush().unwrap();
        follow(&mut live, false);
        seen.push(live.progress().samples);
    }
    // A batch is delayed until the next one, whose records may precede its own.
    assert_eq!(seen, [0, 0, 0, 10, 10, 20, 20, 30]);
    fixture.writer.finish().unwrap();
    follow(&mut live, true);
    let session = SessionReader::open(&fixture.session).unwrap();
    let profile = Profile::from_session(&session, &Options::default()).unwrap();
    assert_eq!(methods(&live), reported(&profile));
    assert_eq!(methods(&live)["org.example.Balls.draw"], (40, 40));
}

#[test]
fn an_image_that_the_manifest_lists_later_gets_its_layer_and_names() {
    let mut fixture = Fixture::new();
    let images = std::mem::take(&mut fixture.writer.manifest_mut().images);
    fixture.writer.save_manifest().unwrap();
    let mut live = open(&fixture);
    fixture.samples(3, (100, 100), &[JNI, DRAW + 1]);
    fixture.writer.flush().unwrap();
    fixture.samples(1, (100, 100), &[FIB]);
    fixture.writer.flush().unwrap();
    follow(&mut live, false);
    assert_eq!(live.progress().samples, 3);
    fixture.writer.manifest_mut().images = images;
    fixture.writer.manifest_mut().images.push(SessionImage {
        path: "late.elf".to_owned(),
        build_id: String::new(),
        kind: ImageKind::Remap,
        layer: Layer::Framework,
        substitute: Some("symbols/late.elf".to_owned()),
        location: None,
    });
    // The remap range has one more method than when it was read.
    let path = fixture.session.join("symbols/remap.elf");
    let name = "org.example.Late.method";
    let slots = vec![slot(JNI + 16 - varid_recording::REMAP_BASE, name)];
    elf(&path, &[1; 20], slots);
    fixture.writer.save_manifest().unwrap();
    fixture.samples(5, (100, 100), &[remap::FIRST_METHOD + 16]);
    fixture.writer.finish().unwrap();
    follow(&mut live, true);
    let (event, span, now) = START;
    let images: BTreeMap<_, _> = live
        .methods(event, span, now)
        .map(|method| (method.name.to_owned(), (method.image, method.layer)))
        .collect();
    let balls = ("balls.apk!classes.dex", Layer::App);
    assert_eq!(images["org.example.Balls.draw"], balls);
    assert_eq!(images["org.example.Balls.fib(int)"], balls);
    assert_eq!(images[name].1, Layer::App);
    assert_eq!(methods(&live)[name], (5, 5));
}

#[test]
fn a_method_has_its_callers_and_what_comes_from_them() {
    let fixture = Fixture::full();
    let mut live = open(&fixture);
    follow(&mut live, true);
    let (event, span, now) = START;
    let is_draw = |name: &str| name == "org.example.Balls.draw";
    let callers = live.callers(event, span, now, |method| is_draw(method.name));
    let run: f64 = callers
        .iter()
        .filter(|caller| caller.name == "org.example.Balls.run")
        .map(|caller| caller.share.total.samples)
        .sum();
    assert_eq!(run, 68.0);
}

#[test]
fn damage_ends_what_is_shown_and_is_said() {
    let fixture = Fixture::full();
    let data = fixture.session.join("perf.data");
    let bytes = std::fs::read(&data).unwrap();
    std::fs::write(&data, &bytes[..bytes.len() / 2]).unwrap();
    let mut live = open(&fixture);
    follow(&mut live, true);
    let progress = live.progress();
    assert!(progress.samples > 0 && progress.samples < 100);
    assert!(progress.damage.is_some());
}
