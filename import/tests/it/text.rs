//! Compares imported sessions with their texts.

use std::io::Write;

use crate::common::{import_bytes, import_with, input};
use flate2::{Compression, write::GzEncoder};
use varid_import::Error;
use varid_model::Rate;
use varid_recording::SessionRecord;
use varid_report::ExportFormat;

const SCRIPT: &str = "\
# cmdline : /usr/bin/perf record -g ./prog
# arch : x86_64
prog 12/13 [002] 5.000001: 250000 cpu-clock:u:
\t55d0c01 inner+0x5 (/usr/bin/prog)
\t55d0c21 inlined (inlined)
\t55d0c41 main+0x25 (/usr/bin/prog (deleted))
\t7f00001 [unknown] (/usr/lib/libc.so.6)

:14 12/14 [001] 5.000002: 250000 cpu-clock:u:
\tffffffff81000010 do_idle+0x10 ([kernel.kallsyms])
\tffffffffc0000010 ext4_read+0x10 ([ext4])
\t7f11001 Lorg/example/Main;::run+0x1 (/tmp/perf-12.map)

prog 12/13 [002] 5.000003: 250000 cycles:u: 55d0c01 inner (/usr/bin/prog)
";

#[test]
fn a_perf_script_has_its_samples_frames_and_events() {
    let imported = import_bytes(SCRIPT.as_bytes(), None).unwrap();
    assert_eq!(imported.summary.format, "perf-script");
    let session = imported.session();
    let manifest = session.manifest();
    let names: Vec<_> = manifest
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    assert_eq!(names, ["cpu-clock:u", "cycles:u"]);
    assert_eq!(manifest.target.value, "/usr/bin/perf record -g ./prog");
    assert_eq!(
        (manifest.counts.samples, manifest.host.arch.as_str()),
        (3, "x86_64")
    );
    let samples = imported.samples();
    assert_eq!(
        samples[0].symbols(),
        ["inner", "inlined", "main", "[unknown]"]
    );
    let images: Vec<_> = samples[0]
        .frames
        .iter()
        .map(|frame| frame.image.as_str())
        .collect();
    assert_eq!(images, ["prog", "prog", "prog", "libc.so.6"]);
    assert_eq!(
        (samples[0].thread.as_str(), samples[0].period),
        ("prog", 250_000)
    );
    assert_eq!(samples[1].layers(), ["kernel", "kernel", "app"]);
    assert_eq!(samples[1].frames[1].image, "[ext4]");
    assert_eq!(samples[1].time - samples[0].time, 1_000);
}

#[test]
fn lines_that_say_nothing_of_samples_are_counted() {
    let text = [SCRIPT, "\nno sample\n"].concat();
    let imported = import_bytes(text.as_bytes(), None).unwrap();
    let line = text.lines().count();
    let session = imported.session();
    let notes = &session.manifest().notes;
    assert!(notes[0].contains(&format!("line {line} ")), "{notes:?}");
}

/// Threads, symbols and periods of a text's samples.
fn stacks(text: &str) -> Vec<(String, String, u64)> {
    let imported = import_bytes(text.as_bytes(), None).unwrap();
    let samples = imported.samples().into_iter();
    samples
        .map(|sample| {
            let symbols = sample.symbols().join(" < ");
            (sample.thread, symbols, sample.period)
        })
        .collect()
}

fn stack(thread: &str, symbols: &str, period: u64) -> (String, String, u64) {
    (thread.to_owned(), symbols.to_owned(), period)
}

#[test]
fn each_first_line_is_a_sample_with_frames_or_without() {
    let text = "\
app 12/12 1.000001: sched:sched_switch: prev_comm=app ==> next_comm=swapper/0
app 12/12 1.000002: sched:sched_switch: prev_comm=app ==> next_comm=swapper/0
app 12/12 1.000003: 250 cycles:u:
\t4005 work (/bin/app)

app 12/12 1.000004: 250 cycles:u:
";
    let imported = import_bytes(text.as_bytes(), None).unwrap();
    let session = imported.session();
    let mut counts = [0; 2];
    for record in session.records().unwrap() {
        if let SessionRecord::Sample(sample) = record.unwrap() {
            counts[sample.event] += 1;
        }
    }
    assert_eq!(counts, [2, 2]);
    assert_eq!(imported.samples()[0].symbols(), ["[unknown]"]);
    assert!(imported.summary.excluded.is_empty());
}

#[test]
fn prose_before_the_first_sample_takes_no_times_away_and_other_records_are_no_samples() {
    let text = "Run 1 results:
prog 12/13 [001] 5.123456: 250 cycles:u:
\t4005 f (/bin/a)

prog 12/13 [001] 5.123460: PERF_RECORD_COMM: prog:12/13
prog 12/13 [001] 5.123466: 250 cycles:u:
\t4105 g (/bin/a)
";
    let imported = import_bytes(text.as_bytes(), None).unwrap();
    let samples = imported.samples();
    let of_prog = samples.iter().filter(|sample| sample.thread == "prog");
    let of_prog: Vec<_> = of_prog.collect();
    assert_eq!(of_prog.len(), 2);
    assert_eq!(of_prog[0].symbols(), ["f"]);
    assert_eq!(of_prog[1].symbols(), ["g"]);
}

#[test]
fn times_and_events_are_optional() {
    let frames = "\t4005 f (/bin/a)\n\t4105 main (/bin/a)\n\n";
    for head in [
        "java 12 cpu-clock:",
        "java 12/13 cpu-clock:",
        "java 12/13 [001] 1 cpu-clock:",
        "java 12/13 5.000001:",
        "java 12/13 5.000001: cpu-clock:",
    ] {
        let text = format!("{head} \n{frames}{head} \n{frames}");
        assert_eq!(
            stacks(&text),
            [stack("java", "f < main", 1), stack("java", "f < main", 1)]
        );
        let imported = import_bytes(text.as_bytes(), None).unwrap();
        let noted = imported
            .summary
            .notes
            .iter()
            .any(|note| note.contains("no times"));
        assert_eq!(noted, !head.contains("5.0"), "{head}");
        let name = imported.session().manifest().events.first.name.clone();
        let expected = if head.contains("cpu-clock") {
            "cpu-clock"
        } else {
            "samples"
        };
        assert_eq!(name, expected);
    }
}

#[test]
fn a_thread_has_its_name_also_where_times_go_back() {
    let sample = |time: u64, comm: &str, tid: u32| {
        format!("{comm} 12/{tid} {time}.000000: 1 cycles:\n\t4005 f (/bin/a)\n\n")
    };
    let text = [
        sample(5, "late", 13),
        sample(2, "early", 13),
        sample(1, "first", 14),
    ];
    let names: Vec<_> = stacks(&text.concat())
        .into_iter()
        .map(|(name, ..)| name)
        .collect();
    assert_eq!(names, ["first", "early", "late"]);
    // The names of a thread alternate, and the last line in the text is not the latest in time.
    let text = [
        sample(1, "worker", 13),
        sample(9, "worker", 13),
        sample(4, "idle", 13),
        sample(6, "worker", 13),
        sample(5, "idle", 13),
        sample(2, "worker", 13),
    ];
    let names: Vec<_> = stacks(&text.concat())
        .into_iter()
        .map(|(name, ..)| name)
        .collect();
    assert_eq!(
        names,
        ["worker", "worker", "idle", "idle", "worker", "worker"]
    );
}

#[test]
fn names_of_threads_may_begin_as_comments_do() {
    let frames = "\t4005 f (/bin/a)\n\n";
    let text = format!(
        "# cmdline : perf record\n#1 pool 12/13 5.000001: 1 cycles:\n{frames}# odd 12/14 5.000002: 1 cycles:\n{frames}# no sample\n"
    );
    let expected = [stack("#1 pool", "f", 1), stack("# odd", "f", 1)];
    assert_eq!(stacks(&text), expected);
    assert_eq!(
        stacks("# a comment 3\n#1 pool;f 1\nmain;f 2\n"),
        [stack("#1 pool", "f", 1), stack("main", "f", 2)]
    );
}

#[test]
fn threads_and_processes_beyond_the_limits_are_one_row_that_is_counted() {
    let mut text = String::new();
    for pid in 1..70_000 {
        text.push_str(&format!(
            "t{pid} {pid} 1.000000: 1 cycles: 4005 f (/bin/a)\n"
        ));
    }
    let imported = import_bytes(text.as_bytes(), None).unwrap();
    assert_eq!(imported.summary.samples, 69_999);
    let notes = &imported.summary.notes;
    assert!(notes[0].contains("more threads"), "{notes:?}");
    assert!(notes[0].contains(" 4463 samples"), "{notes:?}");
    let samples = imported.samples();
    let of_others = samples
        .iter()
        .filter(|sample| sample.thread == "[threads beyond the limit]");
    let named = of_others.inspect(|sample| assert_eq!(sample.symbols(), ["f"]));
    assert_eq!(named.count(), 4_463);
}

#[test]
fn long_names_are_cut_and_the_session_is_read() {
    const EVENTS: usize = 20;
    let long = "\u{1}".repeat(300_000);
    let mut text = format!("# cmdline : {long}\n# os release : {long}\n");
    for number in 0..EVENTS {
        text.push_str(&format!(
            "t 1 1.000000: 1 e{number}{long}: 4005 f (/{number}{long})\n"
        ));
    }
    let format = Some("perf-script");
    let imported = import_bytes(text.as_bytes(), format).unwrap();
    let session = imported.session();
    let manifest = session.manifest();
    assert_eq!(manifest.events.len(), EVENTS);
    assert!(manifest.events.iter().all(|event| event.name.len() <= 256));
    assert!(manifest.target.value.len() <= 4_096 && manifest.host.kernel.len() <= 256);
    assert_eq!(
        (manifest.counts.samples, imported.samples().len()),
        (EVENTS as u64, 1)
    );
}

#[test]
fn a_period_of_zero_is_none() {
    let body = "app 12 5.000001: cycles: \n\t4005 f (/bin/a)\n\n";
    for header in [
        "# cmdline : perf record -c 0 ./app\n",
        "# event : name = cycles, , id = { 1 }, type = 0, { sample_period, sample_freq } = 0, size = 1\n",
        "# cmdline : perf record ./app -c 77\n",
    ] {
        let imported = import_bytes([header, body].concat().as_bytes(), None).unwrap();
        let rate = imported.session().manifest().events.first.rate;
        assert_eq!((rate, imported.samples()[0].period), (Rate::Period(1), 1));
    }
}

#[test]
fn samples_of_a_clock_weigh_what_the_header_says() {
    let body = "app 12 5.000001: cpu-clock: \n\t4005 f (/bin/a)\n\n";
    let captured = "# captured on    : Tue Feb 21 03:35:45 2017\n";
    for (header, period, rate, kind) in [
        (
            "# cmdline : /usr/bin/perf record -F 50 -a\n",
            20_000_000,
            Rate::Frequency(50),
            1,
        ),
        (
            "# event : name = cpu-clock, , id = { 1 }, type = 1, { sample_period, sample_freq } = 1000, size = 1\n",
            1_000,
            Rate::Period(1_000),
            1,
        ),
        // Without a rate, a sample counts as one, not as a nanosecond.
        ("", 1, Rate::Period(1), 4),
        // The samples themselves have periods.
        (
            "app 12 5.000001: 500 cpu-clock: \n\t4005 f (/bin/a)\n\n",
            500,
            Rate::Period(1),
            1,
        ),
    ] {
        let text = [header, captured, body].concat();
        let imported = import_bytes(text.as_bytes(), None).unwrap();
        assert_eq!(imported.samples()[0].period, period);
        let session = imported.session();
        let manifest = session.manifest();
        assert_eq!(
            (manifest.events.first.rate, manifest.events.first.kind),
            (rate, kind)
        );
        assert_eq!(manifest.wall_start, "2017-02-21T03:35:45Z");
    }
}

#[test]
fn names_may_begin_with_parentheses() {
    let text = "\
w 5/5 1.000000: 1 cycles:
\t1000 (anonymous namespace)::leaf(int)+0x10 (/bin/x)
\t2000 (*Conn).Close+0x1 (/bin/server)
\t3000 (anonymous namespace)::Queue::run() const
\t4000 main+0x5 (/bin/x)
";
    let symbols = "(anonymous namespace)::leaf(int) < (*Conn).Close < (anonymous namespace)::Queue::run() const < main";
    assert_eq!(stacks(text), [stack("w", symbols, 1)]);
}

#[test]
fn texts_of_windows_are_the_same_texts() {
    for text in [FOLDED, SCRIPT] {
        let plain = import_bytes(text.as_bytes(), None).unwrap().samples();
        let marked = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let wide: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for encoded in [marked.as_bytes(), &wide] {
            assert_eq!(import_bytes(encoded, None).unwrap().samples(), plain);
        }
    }
}

#[test]
fn a_first_entry_with_a_frame_s_mark_makes_first_entries_frames() {
    let text = "start_thread;Main.run_[j] 4\njava/lang/Thread.run_[1];Worker.loop_[0] 5\n";
    let thread = "source";
    assert_eq!(
        stacks(text),
        [
            stack(thread, "Main.run < start_thread", 4),
            stack(thread, "Worker.loop < java/lang/Thread.run", 5)
        ]
    );
    let imported = import_bytes(text.as_bytes(), None).unwrap();
    assert!(
        imported
            .summary
            .notes
            .iter()
            .any(|note| note.contains("first entry"))
    );
}

#[test]
fn names_beyond_the_limit_are_one_row_that_is_counted() {
    // Short names, enough to exceed the limit of their number.
    let mut text = String::new();
    for number in 0..600_000 {
        text.push_str(&format!("a;f{number} 1\n"));
    }
    let imported = import_bytes(text.as_bytes(), None).unwrap();
    assert_eq!(imported.summary.samples, 600_000);
    let note = imported
        .summary
        .notes
        .iter()
        .find(|note| note.contains("more names"));
    assert!(note.unwrap().contains("75712 frames"), "{note:?}");
}

const FOLDED: &str = "\
main;run;work 3
main;run;work;sys_read_[k];vfs_read_[k] 2
gc;JavaMain;org/example/Main.run_[j];inlined_[i] 5
idle 1
";

#[test]
fn folded_stacks_have_threads_weights_and_layers() {
    let imported = import_bytes(FOLDED.as_bytes(), None).unwrap();
    assert_eq!(imported.summary.format, "folded");
    let samples = imported.samples();
    assert_eq!(samples[0].symbols(), ["work", "run"]);
    assert_eq!((samples[0].thread.as_str(), samples[0].period), ("main", 3));
    assert_eq!(
        samples[1].layers(),
        ["kernel", "kernel", "native", "native"]
    );
    assert_eq!(
        samples[2].symbols(),
        ["inlined", "org/example/Main.run", "JavaMain"]
    );
    assert_eq!(samples[2].layers(), ["app", "app", "native"]);
    assert_eq!(samples[3].symbols(), ["idle"]);
}

#[test]
fn folded_stacks_are_the_same_when_they_are_exported_again() {
    let plain = "main;run;_ZN1a1bEv 3\nmain;run;work with blanks 2\nother;run 4\n";
    let imported = import_bytes(plain.as_bytes(), None).unwrap();
    let exported = imported.export(ExportFormat::named("folded").unwrap());
    let mut lines: Vec<_> = exported.lines().collect();
    lines.sort_unstable();
    let plain = plain.replace("_ZN1a1bEv", "a::b()");
    let mut expected: Vec<_> = plain.lines().collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn the_first_entry_may_be_a_frame() {
    let input = input(b"main;run 3\n").unwrap();
    let imported = import_with(input, |request| request.first_is_frame = true).unwrap();
    assert_eq!(imported.samples()[0].symbols(), ["run", "main"]);
}

#[test]
fn lines_that_are_no_stacks_and_weigh_nothing_are_counted() {
    let imported = import_bytes(b"a;b 3\nnonsense\na;b 0\n", Some("folded")).unwrap();
    let excluded: Vec<_> = imported.summary.excluded.into_iter().collect();
    let expected = [("malformed", 1), ("of-no-weight", 1)];
    assert_eq!(
        excluded,
        expected.map(|(reason, count)| (reason.to_owned(), count))
    );
    assert!(
        imported
            .summary
            .notes
            .iter()
            .any(|note| note.contains("line 2 "))
    );
}

#[test]
fn compressed_text_is_the_same_text() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(FOLDED.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(
        FOLDED.as_bytes(),
        ruzstd::encoding::CompressionLevel::Uncompressed,
    );
    let plain = import_bytes(FOLDED.as_bytes(), None).unwrap().samples();
    let (first, rest) = FOLDED.split_at(FOLDED.len() / 2);
    let level = ruzstd::encoding::CompressionLevel::Uncompressed;
    let frames =
        [first, rest].map(|part| ruzstd::encoding::compress_to_vec(part.as_bytes(), level));
    for packed in [gzip, zstd, frames.concat()] {
        assert_eq!(import_bytes(&packed, None).unwrap().samples(), plain);
    }
}

#[test]
fn a_text_of_another_kind_says_what_is_known() {
    let error = import_bytes(b"<html>\n<body>", None).err().unwrap();
    assert!(matches!(error, Error::UnknownFormat { .. }));
    let known = "source is neither perf.data nor a recording of Java Flight Recorder or text of 'perf script' or folded stacks (it starts with \"<html>\\n<body>\"): --format";
    assert!(error.to_string().starts_with(known), "{error}");
    let format = Some("perf-script");
    let error = import_bytes(
        b"version: 1\ncreator: callgrind-3.19\nfn=main\n16 400\n",
        None,
    );
    let error = error.err().unwrap().to_string();
    assert!(error.contains("a profile of callgrind"), "{error}");
    let error = import_bytes(b"\na;b 3\n", format).err().unwrap();
    assert!(error.to_string().contains("line 2"), "{error}");
}
