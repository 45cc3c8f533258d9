//! Tests that recordings of Java Flight Recorder have their samples, and that damaged ones do no harm.

use crate::{
    common::{Imported, Sample, import_bytes},
    jfr_file::{
        ALLOCATION, ChunkFile, EXECUTION, Fields, Form, Integers, METHOD, MONITOR, START, THREAD,
        Value::{Byte, Int, Long, Text},
        example,
    },
};
use varid_import::Error;
use varid_recording::SessionRecord;

fn imported(chunk: &ChunkFile) -> Imported {
    import_bytes(&chunk.encode(), None).unwrap()
}

/// The time of a sample since the chunk's start, its thread and its weight.
type Weighed = (u64, u32, u64);

/// The samples of each event.
fn by_event(imported: &Imported) -> Vec<(String, Vec<Weighed>)> {
    let session = imported.session();
    let events = &session.manifest().events;
    let names = std::iter::once(&events.first).chain(&events.others);
    let mut found: Vec<_> = names
        .map(|event| (event.name.clone(), Vec::new()))
        .collect();
    for record in session.records().unwrap() {
        if let SessionRecord::Sample(sample) = record.unwrap() {
            let time = sample.time.get() - START;
            let (tid, period) = (sample.tid.get(), sample.period.get());
            found[sample.event].1.push((time, tid, period));
        }
    }
    found
}

/// The first event's samples, each with its frames: `symbol:line layer`, leaf first.
fn stacks(imported: &Imported) -> Vec<(Sample, String)> {
    let samples = imported.samples().into_iter();
    let stack = |sample: &Sample| {
        let frames = sample.frames.iter().map(|frame| {
            let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
            format!("{}{line} {}", frame.symbol, frame.layer)
        });
        frames.collect::<Vec<_>>().join(" < ")
    };
    samples
        .map(|sample| {
            let stack = stack(&sample);
            (sample, stack)
        })
        .collect()
}

#[test]
fn samples_have_times_threads_and_stacks_with_lines_and_layers() {
    for integers in [Integers::Compressed, Integers::Fixed] {
        let imported = imported(&example(integers));
        let found = stacks(&imported);
        let found: Vec<_> = found
            .iter()
            .map(|(sample, stack)| (sample.time, sample.thread.as_str(), stack.as_str()))
            .collect();
        // 100 ticks are 200 ns. Times of an export are since the first sample.
        let expected = [
            (
                0,
                "worker",
                "java.util.HashMap.put:70 framework < org.example.App.main:12 app",
            ),
            (
                200,
                "main",
                "vfs_write kernel < write native < org.example.App.main:13 app",
            ),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn each_kind_of_event_has_its_weight() {
    let imported = imported(&example(Integers::Compressed));
    let expected = [
        ("jdk.ExecutionSample", vec![(200, 52, 1), (400, 51, 1)]),
        ("profiler.WallClockSample", vec![(600, 51, 3)]),
        ("jdk.ObjectAllocationSample", vec![(800, 51, 1_000)]),
        ("jdk.ObjectAllocationInNewTLAB", vec![(1_000, 51, 4_096)]),
        ("jdk.ObjectAllocationOutsideTLAB", vec![(1_200, 51, 65_536)]),
        // At their ends. 50 ticks are 100 ns.
        ("jdk.JavaMonitorEnter", vec![(1_500, 51, 100)]),
        ("jdk.ThreadPark", vec![(2_600, 52, 1_000)]),
    ];
    let expected = expected.map(|(name, samples)| (name.to_owned(), samples));
    assert_eq!(by_event(&imported), expected);
    let session = imported.session();
    let manifest = session.manifest();
    assert_eq!(manifest.target.value, "java org.example.App 7");
    assert_eq!(manifest.wall_start, "2023-11-14T22:13:20Z");
    let writer = imported.summary.writer.as_deref();
    assert_eq!(
        (imported.summary.format, writer),
        ("jfr", Some("async-profiler"))
    );
    let note = "1 events of 1 other kinds are not imported, most of them 1 jdk.GCHeapSummary";
    assert_eq!(imported.summary.notes, [note]);
}

#[test]
fn each_chunk_has_constants_of_its_own() {
    let chunk = |method: &str, line| {
        let mut chunk = ChunkFile::new(Integers::Compressed);
        chunk.method(1, "A", method, "()V");
        chunk.stack(1, &[(1, line)]);
        chunk.thread(1, 51, method);
        chunk.sample(EXECUTION, i64::from(line), 1, 1, &[]);
        chunk.encode()
    };
    let file = [chunk("a", 1), chunk("b", 2), chunk("a", 3), chunk("a", 1)].concat();
    let imported = import_bytes(&file, None).unwrap();
    let mut found: Vec<_> = stacks(&imported)
        .into_iter()
        .map(|(sample, stack)| (sample.thread, stack))
        .collect();
    found.sort();
    let expected = [
        ("a", "A.a:1 app"),
        ("a", "A.a:1 app"),
        ("a", "A.a:3 app"),
        ("b", "A.b:2 app"),
    ];
    let expected = expected.map(|(thread, stack)| (thread.to_owned(), stack.to_owned()));
    assert_eq!(found, expected);
    // Methods have one image, whatever their numbers in a chunk.
    assert_eq!(imported.session().manifest().images.len(), 1);
}

#[test]
fn what_is_missing_or_left_out_is_said() {
    let mut chunk = ChunkFile::new(Integers::Compressed);
    chunk.method(1, "A", "a", "()V");
    chunk.cut_stack(1, &[(1, 5), (9, 6)]);
    let deep: Vec<_> = (0..8_001).map(|_| (1, 5)).collect();
    chunk.stack(2, &deep);
    // A virtual thread without a name.
    let values = [Text(""), Long(0), Text(""), Long(7)];
    chunk.constant(THREAD, 3, &values);
    chunk.sample(EXECUTION, 1, 3, 1, &[]);
    chunk.sample(EXECUTION, 2, 8, 0, &[]);
    chunk.sample(EXECUTION, 3, 8, 2, &[]);
    chunk.sample(MONITOR, 4, 3, 1, &[Long(0)]);
    chunk.sample(ALLOCATION, 5, 3, 1, &[Long(-1)]);
    chunk.raw(ALLOCATION, &[0x80]);
    let imported = imported(&chunk);
    let found = stacks(&imported);
    let found: Vec<_> = found
        .iter()
        .map(|(sample, stack)| (sample.thread.as_str(), stack.as_str()))
        .collect();
    let expected = [
        ("thread 7", "A.a:5 app < [unknown] native"),
        ("[unknown]", "[unknown] native"),
    ];
    assert_eq!(found, expected);
    let excluded: Vec<_> = imported.summary.excluded.iter().collect();
    let reasons = [
        ("malformed", 2),
        ("of-no-weight", 1),
        ("too-many-frames", 1),
    ];
    let reasons = reasons.map(|(reason, count)| (reason.to_owned(), count));
    let reasons: Vec<_> = reasons
        .iter()
        .map(|(reason, count)| (reason, count))
        .collect();
    assert_eq!(excluded, reasons);
    let notes = &imported.summary.notes;
    assert!(notes[0].starts_with("1 samples lack callers"), "{notes:?}");
}

#[test]
fn what_lies_before_damage_is_imported_with_a_note() {
    let chunk = example(Integers::Compressed).encode();
    let two = [chunk.clone(), chunk.clone()].concat();
    let samples = |bytes: &[u8]| {
        let imported = import_bytes(bytes, None).unwrap();
        let notes = imported.summary.notes.join("; ");
        (imported.summary.samples, notes)
    };
    let offset = format!("offset {:#x}: ", chunk.len());
    for (cut, reason) in [
        (20, "the file ends within the header of a chunk"),
        (80, "a chunk does not have its metadata"),
    ] {
        let (count, notes) = samples(&two[..chunk.len() + cut]);
        assert_eq!(count, 8);
        assert!(notes.contains(&format!("{offset}{reason}")), "{notes}");
    }
    // The first chunk's metadata are damaged, the second one is whole.
    let mut damaged = two.clone();
    let metadata = u64::from_be_bytes(damaged[24..32].try_into().unwrap());
    damaged[metadata as usize + 8..][..16].fill(0xff);
    let (count, notes) = samples(&damaged);
    assert_eq!(count, 8);
    let reason = format!("offset {metadata:#x}: the metadata are malformed");
    assert!(notes.contains(&reason), "{notes}");
}

#[test]
fn a_recording_without_samples_says_what_it_has() {
    let mut chunk = ChunkFile::new(Integers::Compressed);
    chunk.event(crate::jfr_file::HEAP, &[Long(0)]);
    let error = import_bytes(&chunk.encode(), None).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("most of them 1 jdk.GCHeapSummary"),
        "{error}"
    );
    let mut old = chunk.encode();
    old[5] = 0;
    let error = import_bytes(&old, None).err().unwrap();
    assert!(error.to_string().contains("another version"), "{error}");
    let error = import_bytes(b"FLR\0\0\x02", Some("jfr")).err().unwrap();
    assert!(error.to_string().contains("offset 0x0"), "{error}");
}

#[test]
fn values_that_take_no_bytes_are_bounded() {
    const NOTHING: i64 = 200;
    const ITSELF: i64 = 201;
    const WIDE: i64 = 202;
    const NOTHINGS: Fields = &[("n", NOTHING, Form::Plain); 1_000];
    const OF_ITSELF: Fields = &[("a", ITSELF, Form::Plain)];
    const OF_WIDE: Fields = &[("startTime", 10, Form::Plain), ("a", WIDE, Form::Plain)];
    const OF_NOTHINGS: Fields = &[("a", NOTHING, Form::Array)];
    let mut chunk = example(Integers::Compressed);
    chunk.classes.extend([
        (NOTHING, "a.Nothing", &[] as Fields),
        (ITSELF, "a.Itself", OF_ITSELF),
        (WIDE, "a.Wide", NOTHINGS),
        (203, "jdk.ThreadSleep", OF_WIDE),
        (204, "jdk.JavaMonitorWait", OF_ITSELF),
        (205, "jdk.NativeMethodSample", OF_NOTHINGS),
    ]);
    chunk.event(203, &[Long(0)]);
    chunk.event(204, &[Long(0)]);
    chunk.event(205, &[Int(i32::MAX)]);
    let imported = imported(&chunk);
    assert_eq!(
        (
            imported.summary.samples,
            imported.summary.excluded["malformed"]
        ),
        (8, 3)
    );
}

#[test]
fn a_changed_recording_is_imported_or_refused() {
    let mut chunk = example(Integers::Compressed);
    chunk.constant(METHOD, 9, &[Long(1), Long(2), Long(3), Byte(0)]);
    let whole = [chunk.encode(), chunk.encode()].concat();
    let mut state = 1u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let (mut imported, mut refused) = (0, 0);
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)];
        }
        match import_bytes(&bytes, Some("jfr")) {
            Ok(session) => {
                imported += 1;
                let read = session.session().records().unwrap().filter(Result::is_err);
                assert_eq!(read.count(), 0);
            }
            Err(Error::Data { .. } | Error::NoSamples { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        imported > 0 && refused > 0,
        "{imported} imported, {refused} refused"
    );
}
