//! Compares a session with the report of simpleperf.

use crate::common::{Imported, fixture, import_bytes, import_with, input};
use crate::simpleperf_file::{FileKind, SimpleperfFile, SourceFile, Symbol};
use varid_recording::{ImageKind, SampleSource, TargetKind};

fn recorded() -> Vec<u8> {
    std::fs::read(fixture("simpleperf/perf.data")).unwrap()
}

#[test]
fn every_sample_has_the_stack_that_simpleperf_reports() {
    let imported = import_bytes(&recorded(), None).unwrap();
    let stacks = std::fs::read_to_string(fixture("simpleperf/stacks.tsv")).unwrap();
    let start = imported.session().manifest().start_time_ns.get();
    let samples = imported.samples();
    assert_eq!(samples.len(), stacks.lines().count());
    for (sample, line) in samples.iter().zip(stacks.lines()) {
        let (time, symbols) = line.split_once('\t').unwrap();
        assert_eq!((start + sample.time).to_string(), time);
        // An address without a symbol: `*libc.so.6[+27249]`. A report makes one row of these for each file.
        let symbols = symbols.split('\t').map(|symbol| {
            let unnamed = symbol.strip_prefix('*').unwrap_or(symbol);
            match unnamed.split_once("[+") {
                Some((file, _)) => format!("{file}+0x?"),
                None => unnamed.to_owned(),
            }
        });
        assert_eq!(sample.symbols(), symbols.collect::<Vec<_>>(), "at {time}");
    }
    let leaves = samples
        .iter()
        .filter(|sample| sample.symbols()[0] == "inner");
    assert!(leaves.count() > 20, "the fixture has its hottest function");
}

#[test]
fn a_session_says_what_it_was_made_of() {
    let session = import_bytes(&recorded(), None).unwrap().session();
    let manifest = session.manifest();
    assert_eq!(manifest.source, SampleSource::Import);
    let imported = manifest.imported.as_ref().unwrap();
    assert_eq!(
        (imported.format.as_str(), imported.writer.as_str()),
        ("perf-data", "simpleperf")
    );
    assert_eq!(manifest.events.first.name, "cpu-clock");
    assert_eq!(manifest.host.arch, "x86_64");
    // simpleperf records the end of its recording.
    let samples = manifest.counts.samples;
    assert_eq!((samples, manifest.counts.attributed), (samples, samples));
}

#[test]
fn without_its_names_files_name_the_addresses() {
    let input = input(&recorded()).unwrap();
    let imported = import_with(input, |request| request.without_names = true).unwrap();
    assert!(imported.session().manifest().images.is_empty());
    let samples = imported.samples();
    // The recorded program no longer exists.
    let leaf = &samples[0].frames[0];
    assert_eq!(leaf.image, "work");
    assert!(leaf.symbol.starts_with("work+0x"), "{leaf:?}");
}

/// A recording of an app with interpreted frames, frames compiled by the JIT and ahead of time, native frames and kernel frames.
fn app() -> SimpleperfFile {
    let mut file = SimpleperfFile::new(&[
        ("app_package_name", "org.example.app"),
        ("event_type_info", "cpu-cycles,0,0"),
        ("simpleperf_version", "1.build.1"),
        (
            "record_stat",
            "sample_record_count=2,userspace_lost_samples=3",
        ),
    ]);
    let symbol = |vaddr, len, name| Symbol { vaddr, len, name };
    file.comm(7, "org.example.app");
    file.map(
        7,
        0x7000_0000,
        0x1_0000,
        0x2000,
        "/data/app/org.example.app/base.vdex",
    );
    file.map(
        7,
        0x7100_0000,
        0x1_0000,
        0,
        "/system/framework/framework.jar",
    );
    file.map(
        7,
        0x7200_0000,
        0x1_0000,
        0x1000,
        "/data/app/org.example.app/lib/arm64/libx.so",
    );
    file.map(
        7,
        0x7300_0000,
        0x100,
        0x3c78,
        "perf.data_jit_app_cache:15480-17544",
    );
    file.map(
        7,
        0x7400_0000,
        0x1_0000,
        0,
        "/apex/com.android.art/lib64/libart.so",
    );
    file.map_kernel(0xffff_ff80_0000_0000, 0x1000_0000, "[kernel.kallsyms]");
    file.files = vec![
        SourceFile {
            path: "/data/app/org.example.app/base.vdex",
            kind: FileKind::Dex,
            min_vaddr: 0,
            place: 0,
            symbols: vec![symbol(0x2100, 0x40, "org.example.app.Main.draw")],
        },
        SourceFile {
            path: "/system/framework/framework.jar",
            kind: FileKind::Dex,
            min_vaddr: 0,
            place: 0,
            symbols: vec![symbol(0x100, 0x40, "android.os.Handler.dispatchMessage")],
        },
        SourceFile {
            path: "/data/app/org.example.app/lib/arm64/libx.so",
            kind: FileKind::Elf,
            min_vaddr: 0x5000,
            place: 0x1000,
            symbols: vec![symbol(0x5100, 0x40, "_ZN1x4drawEi")],
        },
        SourceFile {
            path: "perf.data_jit_app_cache:15480-17544",
            kind: FileKind::Elf,
            min_vaddr: 0,
            place: 0,
            // The symbols have addresses of the process.
            symbols: vec![symbol(
                0x7300_0010,
                0x40,
                "void org.example.app.Main.run(int)",
            )],
        },
        SourceFile {
            path: "/apex/com.android.art/lib64/libart.so",
            kind: FileKind::Elf,
            min_vaddr: 0,
            place: 0,
            symbols: vec![symbol(0x40, 0x40, "art_quick_invoke_stub")],
        },
        SourceFile {
            path: "[kernel.kallsyms]",
            kind: FileKind::Kernel,
            min_vaddr: 0,
            place: 0,
            symbols: vec![symbol(0xffff_ff80_0000_1000, 0x40, "do_futex")],
        },
    ];
    // The callers' addresses are within the calls. Here they are the first addresses of their functions.
    let user = [
        0x7200_0100,
        0x7000_0100,
        0x7300_0010,
        0x7400_0040,
        0x7100_0100,
    ];
    file.sample(7, 10, &[], &user);
    file.sample(7, 20, &[0xffff_ff80_0000_1004], &user);
    file
}

fn of_app() -> Imported {
    import_bytes(&app().to_bytes(), None).unwrap()
}

#[test]
fn methods_are_of_the_app_or_the_framework_however_they_ran() {
    let imported = of_app();
    let [first, second] = &imported.samples()[..] else {
        panic!("two samples")
    };
    let symbols = [
        "x::draw(int)",
        "org.example.app.Main.draw",
        "org.example.app.Main.run",
        "art_quick_invoke_stub",
        "android.os.Handler.dispatchMessage",
    ];
    assert_eq!(first.symbols(), symbols);
    assert_eq!(first.layers(), ["native", "app", "app", "vm", "framework"]);
    assert_eq!(second.symbols()[0], "do_futex");
    assert_eq!(second.symbols()[1..], symbols);
    assert_eq!(second.layers()[0], "kernel");
    let images: Vec<_> = first
        .frames
        .iter()
        .map(|frame| frame.image.as_str())
        .collect();
    assert_eq!(
        images,
        [
            "libx.so",
            "base.vdex",
            "[jit]",
            "libart.so",
            "framework.jar"
        ]
    );
}

#[test]
fn what_simpleperf_has_lost_is_carried_over() {
    let imported = of_app();
    assert_eq!(imported.summary.lost, 3);
    let session = imported.session();
    let manifest = session.manifest();
    assert_eq!(manifest.counts.lost, 3);
    assert_eq!(
        (manifest.target.kind, manifest.target.value.as_str()),
        (TargetKind::App, "org.example.app")
    );
    let dex = manifest
        .images
        .iter()
        .filter(|image| image.kind == ImageKind::Dex);
    assert_eq!(dex.count(), 2);
}

#[test]
fn losses_that_perf_sums_up_count_once_and_what_it_filters_is_none() {
    let mut file = app();
    file.lost(25, 4);
    file.lost_in_all(0, 6);
    file.lost_in_all(1 << 15, 100);
    let summary = import_bytes(&file.to_bytes(), None).unwrap().summary;
    // The losses of simpleperf itself are added.
    assert_eq!(summary.lost, 6 + 3);
    let [note] = &summary.notes[..] else {
        panic!("{:?}", summary.notes);
    };
    assert!(note.contains("100 samples"), "{note}");
}

#[test]
fn an_unnamed_address_between_methods_keeps_its_place() {
    let mut file = app();
    // After the JIT's function, and in no function of the library.
    file.sample(7, 30, &[], &[0x7300_0080, 0x7200_0800]);
    let imported = import_bytes(&file.to_bytes(), None).unwrap();
    let samples = imported.samples();
    let last = &samples[2];
    assert_eq!(last.symbols()[1], "libx.so+0x?");
    assert!(!last.symbols()[0].contains("org.example"), "{last:?}");
}
