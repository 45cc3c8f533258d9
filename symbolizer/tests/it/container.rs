//! Tests that all dex files are found in the files that hold them, with their positions.

use crate::common;
use varid_testing::containers;

use std::path::Path;
use std::process::Command;
use varid_symbolizer::container::{DexEntry, dex_files, entries};

/// Two dex files: one to be the first of a container, one to be another.
fn dexes() -> (Vec<u8>, Vec<u8>) {
    let first = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    // The length is not a multiple of four, so that the next file has to be aligned.
    let mut second = first.clone();
    second.push(7);
    let size = second.len() as u32;
    second[0x20..0x24].copy_from_slice(&size.to_le_bytes());
    (first, second)
}

fn usable(found: Vec<varid_symbolizer::Result<DexEntry<'_>>>) -> Vec<DexEntry<'_>> {
    found.into_iter().map(Result::unwrap).collect()
}

/// The offset of `part` in `whole`.
fn find(whole: &[u8], part: &[u8], from: usize) -> u64 {
    let at = whole[from..]
        .windows(part.len())
        .position(|window| window == part);
    (from + at.unwrap()) as u64
}

/// A folder with archives of two dex files that another tool has written.
fn archives(first: &[u8], second: &[u8]) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("first"), first).unwrap();
    std::fs::write(path("second"), second).unwrap();
    let script = common::fixtures().join("container/archives.py");
    let arguments = [path("first"), path("second"), folder.path().to_owned()];
    let arguments: Vec<&str> = arguments.iter().map(|path| common::text(path)).collect();
    let said = common::run(common::text(&script), &arguments)?;
    assert_eq!(said, "");
    Some(folder)
}

#[test]
fn archives_of_another_writer_are_read() {
    let (first, second) = dexes();
    let Some(folder) = archives(&first, &second) else {
        return;
    };
    let path = |name: &str| folder.path().join(name);
    for name in [
        "stored.apk",
        "deflated.apk",
        "zip64.apk",
        "streamed.apk",
        "prefixed.apk",
    ] {
        let bytes = std::fs::read(path(name)).unwrap();
        let found = usable(dex_files(name, &bytes).unwrap());
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["classes.dex", "classes2.dex"], "{name}");
        for (entry, dex) in found.iter().zip([&first, &second]) {
            assert!(entry.bytes == dex.as_slice(), "{name}: {}", entry.name);
            let stored = matches!(name, "stored.apk" | "prefixed.apk");
            let expected = stored.then(|| find(&bytes, dex, 0));
            assert_eq!(entry.offset, expected, "{name}: {}", entry.name);
            assert!(entry.dex_files().all(|(_, dex)| dex.is_ok()));
        }
    }
    for name in ["stored.aar", "deflated.aar"] {
        let bytes = std::fs::read(path(name)).unwrap();
        let found = usable(dex_files(name, &bytes).unwrap());
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        let expected = [
            "classes.jar!classes.dex",
            "classes.jar!classes2.dex",
            "libs/more.jar!classes.dex",
            "libs/more.jar!classes2.dex",
        ];
        assert_eq!(names, expected, "{name}");
        let offset = (name == "stored.aar").then(|| find(&bytes, &first, 0));
        assert_eq!(found[0].offset, offset);
        assert!(found[3].bytes == second.as_slice() && found[3].offset.is_none());
    }
}

#[test]
fn every_version_of_vdex_is_walked() {
    let (first, second) = dexes();
    for version in ["006", "010", "019", "021", "027"] {
        let bytes = containers::vdex(version, &[&second, &first, &second], &[]);
        let found = usable(dex_files("x.vdex", &bytes).unwrap());
        let mut from = 0;
        let names = ["classes.dex", "classes2.dex", "classes3.dex"];
        for ((entry, dex), name) in found.iter().zip([&second, &first, &second]).zip(names) {
            let offset = find(&bytes, dex, from);
            assert_eq!(entry.offset, Some(offset), "{version}");
            assert_eq!(entry.name, name);
            assert!(entry.bytes == dex.as_slice());
            from = offset as usize + dex.len();
        }
        assert_eq!(found.len(), 3, "{version}");
    }
}

/// The fixture is from the compiler of ART 14: vm/tests/fixtures/art14/make.sh.
#[test]
fn what_art_14_has_compiled_an_app_into_has_the_app_s_dex_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vm/tests/fixtures");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (dex, vdex) = (read("art11/code.dex"), read("art14/code.vdex"));
    let found = usable(dex_files("code.vdex", &vdex).unwrap());
    let [entry] = &found[..] else {
        panic!("{} dex files", found.len());
    };
    assert_eq!(entry.name, "classes.dex");
    assert_eq!(entry.offset, Some(find(&vdex, &dex, 0)));
    assert!(entry.bytes == dex.as_slice());
    // The .odex file has the compiled functions, but no bytecode.
    let odex = read("art14/code.odex");
    let error = dex_files("code.odex", &odex).unwrap_err().to_string();
    assert!(error.contains("(version 230)"), "{error}");
}

/// Two compact dex files whose shared data follows both: each entry includes all of it.
#[test]
fn compact_dex_files_come_with_the_data_that_they_share() {
    let (first, _) = dexes();
    let shared = [0x5a; 64];
    for version in ["019", "021", "027"] {
        let empty = containers::vdex(version, &[&first, &first], &shared);
        let starts = [find(&empty, &first, 0), find(&empty, &first, first.len())];
        let data = find(&empty, &shared, 0);
        let dexes = starts.map(|start| containers::compact(&first, ((data - start) as usize, 64)));
        let bytes = containers::vdex(version, &[&dexes[0], &dexes[1]], &shared);
        let found = usable(dex_files("x.vdex", &bytes).unwrap());
        assert_eq!(found.len(), 2);
        for (entry, start) in found.iter().zip(starts) {
            assert_eq!(entry.offset, Some(start), "{version}");
            assert!(entry.bytes.ends_with(&shared));
            assert_eq!(entry.bytes.len() as u64, data + 64 - start);
        }
        for place in entries("x.vdex", bytes.as_slice()).unwrap() {
            assert_eq!(place.unwrap().own_len, first.len() as u64, "{version}");
        }
        // Data must not reach beyond the section.
        let lying = containers::compact(&first, ((data - starts[0]) as usize, 65));
        let bytes = containers::vdex(version, &[&lying, &dexes[1]], &shared);
        let error = dex_files("x.vdex", &bytes).unwrap()[0]
            .as_ref()
            .unwrap_err()
            .to_string();
        assert!(error.contains("data_off at offset"), "{error}");
    }
}

/// ART reads the files of our writer as we do, which confirms both the writer and the reader.
#[test]
fn art_finds_the_same_dex_files_in_a_vdex() {
    const ART: &str = "/usr/lib/x86_64-linux-gnu/android";
    if !cfg!(target_arch = "x86_64") || !Path::new(ART).join("libart.so.0").exists() {
        return eprintln!("not compared with ART: no libart here");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("vdex_by_art");
    let built = Command::new("cc")
        .arg(common::fixtures().join("container/vdex_by_art.c"))
        .arg(format!("-DART=\"{ART}\""))
        .args(["-o", common::text(&program), "-ldl"])
        .status();
    assert!(built.unwrap().success());
    let (first, second) = dexes();
    let plain = containers::vdex("021", &[&second, &first, &second], &[]);
    let shared = [0x5a; 64];
    let start = |at: usize| {
        find(
            &containers::vdex("021", &[&first, &first], &shared),
            &first,
            at,
        )
    };
    let end = start(first.len()) + first.len() as u64;
    let compact = |at: u64| containers::compact(&first, ((end - at) as usize, 64));
    let dexes = [compact(start(0)), compact(start(first.len()))];
    let mixed = containers::vdex("021", &[&dexes[0], &dexes[1]], &shared);
    for (name, bytes) in [("plain.vdex", plain), ("compact.vdex", mixed)] {
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        let output = Command::new(&program).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let found = usable(dex_files(name, &bytes).unwrap());
        let ours: String = found
            .iter()
            .map(|entry| format!("{}\n", entry.offset.unwrap()))
            .collect();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, ours + "end\n", "{name}: {stderr}");
    }
}

#[test]
fn every_version_of_oat_is_walked() {
    let (first, second) = dexes();
    let files: [(&str, &[u8]); 2] = [
        ("/data/app/org.example/base.apk", &second),
        ("/data/app/org.example/base.apk:classes2.dex", &first),
    ];
    for version in ["039", "045", "064", "079", "088"] {
        let bytes = containers::oat(version, &files);
        let found = usable(dex_files("x.odex", &bytes).unwrap());
        assert_eq!(found.len(), 2, "{version}");
        for (entry, (location, dex)) in found.iter().zip(files) {
            assert_eq!(entry.name, location);
            assert!(entry.bytes == dex);
            assert_eq!(entry.offset, Some(find(&bytes, dex, 0)));
        }
    }
    let error = dex_files("x.odex", &containers::oat("131", &files)).unwrap_err();
    assert!(
        error.to_string().contains("in the .vdex file beside it"),
        "{error}"
    );
    // The tables of these versions do not depend on the dex files, so the second file is found although the first is broken.
    let broken: [(&str, &[u8]); 2] = [(files[0].0, &[0; 0x70]), files[1]];
    let bytes = containers::oat("088", &broken);
    let found = dex_files("x.odex", &bytes).unwrap();
    let error = found[0].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("x.odex: dex magic at offset"), "{error}");
    assert!(found[1].as_ref().unwrap().bytes == first.as_slice());
}

#[test]
fn dalvik_s_optimized_file_holds_one() {
    let (first, _) = dexes();
    let bytes = containers::optimized(&first);
    let found = usable(dex_files("x.odex", &bytes).unwrap());
    assert_eq!((found.len(), found[0].offset), (1, Some(40)));
    assert!(found[0].bytes == first.as_slice());
}

/// If a directory has a wrong entry, that entry is an error, and the other is read.
#[test]
fn a_lying_entry_leaves_the_others_usable() {
    let (first, second) = dexes();
    let Some(folder) = archives(&first, &second) else {
        return;
    };
    let original = std::fs::read(folder.path().join("deflated.apk")).unwrap();
    // The second record of the central directory is for classes.dex.
    let record = |bytes: &[u8], nth: usize| {
        let mut at = 0;
        for _ in 0..nth {
            at = find(bytes, b"PK\x01\x02", at + 1) as usize;
        }
        at
    };
    let at = record(&original, 2);
    for (field, width, value, reason) in [
        (10, 2, 99u32, "compression method"),
        (16, 4, 0x1234_5678, "crc-32"),
        (20, 4, 0x7fff_0000, "compressed size"),
        (24, 4, 0x7fff_0000, "uncompressed size"),
        (24, 4, 100, "deflated data"),
        (42, 4, 0x7fff_0000, "local header offset"),
        (42, 4, 0, "uncompressed size"),
    ] {
        let mut bytes = original.clone();
        bytes[at + field..at + field + width].copy_from_slice(&value.to_le_bytes()[..width]);
        let found = dex_files("x.apk", &bytes).unwrap();
        let errors: Vec<String> = found
            .iter()
            .filter_map(|entry| entry.as_ref().err().map(ToString::to_string))
            .collect();
        assert_eq!(errors.len(), 1, "{reason}: {errors:?}");
        assert!(errors[0].contains(reason), "{reason}: {errors:?}");
        let rest = found.iter().flatten().next().unwrap();
        assert!(rest.bytes == second.as_slice());
    }
    // Both records refer to the same bytes.
    let mut bytes = original.clone();
    let other = record(&original, 3);
    bytes.copy_within(at + 42..at + 46, other + 42);
    bytes.copy_within(at + 16..at + 28, other + 16);
    let found = dex_files("x.apk", &bytes).unwrap();
    let error = found[1].as_ref().unwrap_err().to_string();
    assert!(found[0].is_ok() && error.contains("overlaps"), "{error}");
}

#[test]
fn what_holds_no_dex_file_says_so() {
    for (bytes, reason) in [
        (&b""[..], "magic at offset 0x0: lies beyond"),
        (
            b"%PDF-1.4 and so on",
            "magic at offset 0x0: not a file that holds",
        ),
        (b"vdex099\0", "vdex version at offset 0x4: 099 is none of"),
        (b"dey\n035\0", "dey magic at offset 0x0"),
        (b"PK\x03\x04 cut short", "end of central directory"),
        (b"\x7fELF", "ELF header at offset 0x0"),
    ] {
        let error = entries("some file", bytes).unwrap_err().to_string();
        assert!(error.starts_with("some file: "), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}
