//! Compares lines and inlined functions with addr2line.

use crate::common;

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use crate::common::{
    Fixture, RUN,
    native::{
        Lines, Native, SOURCE, all, by, json, lines, lines_by_addr2line, lines_of, options, run,
    },
};
use varid_model::{Address, Pid, Tid};
use varid_recording::{MappingRecord, SessionRecord};
use varid_report::{
    CodeFilter, GroupBy, NameOptions, NamePattern, OutputFormat, ReportTable, View,
};

#[test]
fn lines_and_inlined_functions_are_those_of_addr2line() {
    let native = Native::new(true);
    let found = lines(&native.profile(all(native.fixture.dir.path())));
    let expected = lines_by_addr2line(&native.library, &native.addresses);
    assert_eq!(found, expected);
    assert!(
        found
            .keys()
            .any(|(name, inlined, ..)| name == "store" && *inlined)
    );
}

#[test]
fn without_inlining_a_line_stays_and_its_function_is_the_one_that_is_there() {
    let native = Native::new(true);
    let names = NameOptions {
        inlined: false,
        ..all(native.fixture.dir.path())
    };
    let found = lines(&native.profile(names));
    assert!(
        found
            .keys()
            .all(|(name, inlined, ..)| !inlined && name != "store")
    );
    let expected = lines_by_addr2line(&native.library, &native.addresses);
    let own = |lines: &Lines| {
        let mut own = BTreeMap::new();
        for ((_, _, file, line), (samples, _)) in lines {
            *own.entry((file.clone(), *line)).or_insert(0) += samples;
        }
        own.retain(|_, samples| *samples > 0);
        own
    };
    assert_eq!(own(&found), own(&expected));
}

#[test]
fn the_call_graph_marks_what_is_inlined() {
    let native = Native::new(true);
    let profile = native.profile(NameOptions {
        lines: false,
        ..all(native.fixture.dir.path())
    });
    let view = View {
        table: ReportTable::CALLGRAPH,
        code: CodeFilter {
            symbol: Some(NamePattern::new("twice").unwrap()),
            ..CodeFilter::default()
        },
        ..View::default()
    };
    let report = json(&profile, &view);
    let [twice] = &report["rows"].as_array().unwrap()[..] else {
        panic!("{report}");
    };
    assert_eq!(twice["inlined"], true);
    let names = |calls: &str| -> Vec<String> {
        let calls = twice[calls].as_array().unwrap().iter();
        let name = |call: &serde_json::Value| call["symbol"].as_str().unwrap().to_owned();
        let mut names: Vec<_> = calls.map(name).collect();
        names.sort();
        names
    };
    assert_eq!(names("callers"), ["entry", "leaf"]);
    assert_eq!(names("callees"), ["store"]);
    let mut text = Vec::new();
    varid_report::render(&profile, &view, OutputFormat::Text, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("twice (inlined)"), "{text}");
    assert!(text.contains("  store (inlined)"), "{text}");
}

#[test]
fn names_do_not_depend_on_lines_and_totals_do_not_on_inlining() {
    let native = Native::new(true);
    let shares = |names: NameOptions| {
        let report = json(&native.profile(names), &by(GroupBy::Symbol));
        let rows = report["rows"].as_array().unwrap().clone();
        let row = |row: &serde_json::Value| {
            let own = row["self"].as_u64().unwrap();
            let total = row["total"].as_u64().unwrap();
            (row["symbol"].as_str().unwrap().to_owned(), (own, total))
        };
        rows.iter().map(row).collect::<BTreeMap<_, _>>()
    };
    let folder = native.fixture.dir.path();
    let plain = shares(NameOptions {
        symbols: vec![folder.to_owned()],
        ..NameOptions::default()
    });
    let (lines, inlined) = (
        shares(NameOptions {
            inlined: false,
            ..all(folder)
        }),
        shares(all(folder)),
    );
    assert_eq!(plain, lines);
    for (name, (own, total)) in &plain {
        assert_eq!(inlined[name].1, *total, "{name}");
        assert!(inlined[name].0 <= *own, "{name}");
    }
    assert!(inlined.contains_key("twice") && !plain.contains_key("twice"));
}

#[test]
fn the_kernel_has_lines_wherever_it_was_loaded() {
    let mut fixture = Fixture::new();
    let dir = fixture.dir.path().to_owned();
    let (source, vmlinux) = (dir.join("kernel.c"), dir.join("vmlinux"));
    fs::write(&source, SOURCE.replace("entry", "_start")).unwrap();
    run(Command::new("cc")
        .args(["-O2", "-g", "-nostdlib", "-static", "-no-pie", "-fno-pie"])
        .args(["-mcmodel=kernel", "-Wl,--build-id=0x1234567890"])
        .args(["-Wl,-Ttext-segment=0xffffffff80fff000"])
        .args(["-Wl,--section-start=.text=0xffffffff81000000"])
        .args(["-Wl,--defsym=_text=0xffffffff81000000", "-o"])
        .args([&vmlinux, &source]));
    let moved = 0x1d20_0000;
    let mut symbols = String::new();
    let mut addresses = Vec::new();
    for line in run(Command::new("nm").arg("-S").arg(&vmlinux)).lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [start, size, _, name @ ("leaf" | "hidden" | "_start")] = words[..] {
            let hex = |word| u64::from_str_radix(word, 16).unwrap();
            symbols += &format!("{:x}\t{size}\t{name}\t\n", hex(start) + moved);
            addresses.extend(hex(start)..hex(start) + hex(size));
        }
    }
    fs::write(fixture.writer.symbols().join("kernel.sym"), symbols).unwrap();
    let start = common::KERNEL + moved;
    let time = fixture.tick();
    fixture.write(&SessionRecord::Mapping(MappingRecord {
        time,
        pid: Pid::KERNEL,
        tid: Tid::new(0),
        start: Address::new(start),
        len: 0x10_0000,
        pgoff: start,
        kernel: true,
        mode: None,
        path: "[kernel.kallsyms]_text".into(),
        build_id: vec![0x12, 0x34, 0x56, 0x78, 0x90],
    }));
    for address in &addresses {
        fixture.kernel_samples(1, (100, 100), &[address + moved], &[RUN]);
    }
    fixture.writer.finish().unwrap();
    let names = |vmlinux: Option<PathBuf>| NameOptions {
        vmlinux,
        inlined: true,
        lines: true,
        ..NameOptions::default()
    };
    let profile = fixture.profile(&options(names(Some(vmlinux.clone()))));
    let expected = lines_by_addr2line(&vmlinux, &addresses);
    assert_eq!(lines_of(&profile, "[kernel]"), expected);
    let without = fixture.profile(&options(names(None)));
    let note = without
        .recording
        .notes
        .iter()
        .find(|note| note.contains("--vmlinux"));
    assert!(note.is_some_and(|note| note.contains("1234567890")));
    // The file of another kernel is not used.
    let other = fixture.profile(&options(names(Some(fixture.dir.path().join("libfoo.so")))));
    assert!(
        other.recording.notes[0].contains("build-id"),
        "{:?}",
        other.recording.notes
    );
    assert!(lines_of(&other, "[kernel]").keys().all(|key| key.3 == 0));
}
