//! Do sessions of texts say what the texts say?

use std::io::Write;

use crate::common::{import_bytes, import_with, input};
use flate2::{Compression, write::GzEncoder};
use varid_import::{Error, SourceFormat};
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
    assert_eq!(imported.summary.format, SourceFormat::PerfScript);
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
fn what_is_no_sample_is_counted() {
    let text = [SCRIPT, "prog 12/13 5.000004: 1 cycles:u:\n\nno sample\n"].concat();
    let imported = import_bytes(text.as_bytes(), None).unwrap();
    let excluded: Vec<_> = imported.summary.excluded.iter().collect();
    assert_eq!(excluded, [(&"without-frame".to_owned(), &1)]);
    let line = text.lines().count();
    let session = imported.session();
    let notes = &session.manifest().notes;
    assert!(notes[0].contains(&format!("line {line} ")), "{notes:?}");
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
    assert_eq!(imported.summary.format, SourceFormat::Folded);
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
    let exported = imported.export(ExportFormat::Folded);
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
    let imported = import_bytes(b"a;b 3\nnonsense\na;b 0\n", Some(SourceFormat::Folded)).unwrap();
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
    assert!(error.to_string().contains("--format"), "{error}");
    let format = Some(SourceFormat::PerfScript);
    let error = import_bytes(b"\na;b 3\n", format).err().unwrap();
    assert!(error.to_string().contains("line 2"), "{error}");
}
