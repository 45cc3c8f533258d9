//! Annotates native functions.

use std::{collections::BTreeMap, path::Path, process::Command};

use super::*;
use crate::common::native::{Native, SOURCE, lines_by_addr2line, run};

/// The instructions of a function according to objdump: address, size and mnemonic.
fn by_objdump(objdump: &str, library: &Path, function: &str) -> Vec<(u64, u64, String)> {
    let mut command = Command::new(objdump);
    if objdump == "objdump" && cfg!(target_arch = "x86_64") {
        command.args(["-M", "intel"]);
    }
    let text = run(command
        .args(["-d", "-w", "--no-show-raw-insn"])
        .arg(format!("--disassemble={function}"))
        .arg(library));
    let sizes = run(Command::new("nm").arg("-S").arg(library));
    let end = sizes.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [start, size, _, name] = words[..] else {
            return None;
        };
        let hex = |word| u64::from_str_radix(word, 16).unwrap();
        (name == function).then(|| (hex(start) & !1) + hex(size))
    });
    let mut found: Vec<(u64, u64, String)> = Vec::new();
    for line in text.lines() {
        let Some((address, rest)) = line.split_once(":\t") else {
            continue;
        };
        let address = u64::from_str_radix(address.trim(), 16).unwrap();
        let mnemonic = rest.split_whitespace().next().unwrap_or_default();
        // binutils writes this before a long no-op.
        let mnemonic = match mnemonic {
            "cs" | "data16" => "nop",
            "movabs" => "mov",
            other => other,
        };
        found.push((address, 0, mnemonic.to_owned()));
    }
    let ends = found.iter().skip(1).map(|row| row.0).chain(end);
    let ends: Vec<u64> = ends.collect();
    for (row, end) in found.iter_mut().zip(ends) {
        row.1 = end - row.0;
    }
    found
}

/// The instructions of an annotation: address, size, mnemonic and own samples.
fn instructions(annotation: &Annotation) -> Vec<(u64, u64, String, u64)> {
    let lines = annotation.files.iter().flat_map(|file| &file.lines);
    let mut found: Vec<_> = lines
        .flat_map(|line| &line.instructions)
        .map(|found| {
            let mnemonic = found.text.split(' ').next().unwrap_or_default().to_owned();
            (
                found.address,
                found.len.into(),
                mnemonic,
                found.share.own.get(0),
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn instructions_are_those_of_objdump_each_with_its_samples() {
    let native = Native::new(true);
    let names = NameOptions {
        symbols: vec![native.fixture.dir.path().to_owned()],
        ..NameOptions::default()
    };
    let profile = native.fixture.profile(&options(names));
    let lines = lines_by_addr2line(&native.library, &native.addresses);
    for function in ["leaf", "hidden", "entry"] {
        let request = AnnotateRequest {
            method: Some(function.to_owned()),
            sources: vec![native.fixture.dir.path().to_owned()],
            ..AnnotateRequest::default()
        };
        let annotation = one(annotate(&profile, &request).unwrap());
        // There is a sample at each byte.
        let expected = by_objdump("objdump", &native.library, function);
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(address, size, mnemonic)| (address, size, mnemonic, size))
            .collect();
        assert!(expected.len() > 2, "{expected:?}");
        assert_eq!(instructions(&annotation), expected, "{function}");
        // The lines of the function itself, without functions inlined into it.
        let mut own = BTreeMap::new();
        for ((name, inlined, _, line), share) in &lines {
            if name == function && !inlined {
                own.insert(*line, share.1);
            }
        }
        let found = annotation.files.iter().flat_map(|file| &file.lines);
        let found: BTreeMap<u64, u64> = found
            .filter(|line| line.share.total.get(0) > 0)
            .map(|line| (u64::from(line.number.unwrap()), line.share.total.get(0)))
            .collect();
        assert_eq!(found, own, "{function}");
        for line in annotation.files.iter().flat_map(|file| &file.lines) {
            let number = usize::try_from(line.number.unwrap()).unwrap();
            let source = SOURCE.lines().nth(number - 1);
            assert_eq!(line.source.as_deref(), source);
        }
    }
    let request = AnnotateRequest {
        method: Some("leaf".to_owned()),
        sources: vec![native.fixture.dir.path().to_owned()],
        ..AnnotateRequest::default()
    };
    let text = super::text(&one(annotate(&profile, &request).unwrap()), columns(160));
    assert!(
        text.contains("(inlined) store native.c:3: sink = n;"),
        "{text}"
    );
}

#[test]
fn arm_instructions_are_those_of_objdump() {
    for (target, most_unknown) in [("aarch64-linux-gnu", 0), ("arm-linux-gnueabihf", 2)] {
        let mut fixture = Fixture::new();
        let dir = fixture.dir.path().to_owned();
        let (source, library) = (dir.join("native.c"), dir.join("built.so"));
        let extra = "double scaled(double x, int n) { return x * n + 0.3; }\n";
        fs::write(&source, format!("{SOURCE}{extra}")).unwrap();
        run(Command::new(format!("{target}-gcc"))
            .args([
                "-O2",
                "-g",
                "-fPIC",
                "-shared",
                "-nostdlib",
                "-Wl,--build-id=0x1234",
                "-o",
            ])
            .args([&library, &source]));
        let time = fixture.tick();
        fixture.write(&SessionRecord::Mapping(MappingRecord {
            time,
            pid: Pid::new(100),
            tid: Tid::new(100),
            start: Address::new(CODE),
            len: 0x10_0000,
            pgoff: 0,
            kernel: false,
            mode: None,
            path: "/gone/built.so".into(),
            build_id: vec![0x12, 0x34],
        }));
        for offset in (0..0x1000).step_by(2) {
            samples(&mut fixture, 1, Precision::Exact, &[CODE + offset]);
        }
        fixture.writer.finish().unwrap();
        let names = NameOptions {
            symbols: vec![dir],
            ..NameOptions::default()
        };
        let profile = fixture.profile(&options(names));
        for function in ["leaf", "hidden", "entry", "scaled"] {
            let request = AnnotateRequest {
                method: Some(function.to_owned()),
                ..AnnotateRequest::default()
            };
            let annotation = one(annotate(&profile, &request).unwrap());
            let expected = by_objdump(&format!("{target}-objdump"), &library, function);
            let found = instructions(&annotation);
            let places = |rows: &mut dyn Iterator<Item = (u64, u64)>| rows.collect::<Vec<_>>();
            assert_eq!(
                places(&mut found.iter().map(|row| (row.0, row.1))),
                places(&mut expected.iter().map(|row| (row.0, row.1))),
                "{target} {function}"
            );
            assert!(found.iter().all(|row| row.3 == row.1 / 2), "{found:?}");
            // For Thumb, remove the width and the flags that binutils writes into some mnemonics. Floating point is not
            // decoded.
            let plain = |mnemonic: &str| {
                let name = mnemonic.split('.').next().unwrap_or_default();
                match target {
                    "aarch64-linux-gnu" => mnemonic.to_owned(),
                    _ => name.trim_end_matches('s').to_owned(),
                }
            };
            let other = found
                .iter()
                .zip(&expected)
                .filter(|(found, expected)| plain(&found.2) != plain(&expected.2));
            let other: Vec<_> = other.collect();
            let is_float = function == "scaled" && target != "aarch64-linux-gnu";
            assert!(
                is_float || other.len() <= most_unknown,
                "{target} {function}: {other:?}"
            );
        }
    }
}
