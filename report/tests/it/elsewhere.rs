//! Checks that recorded files, and no others, are found in all configured places.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{
    APP, DRAW, Fixture, LIBFOO, RUN, elf,
    native::{Native, SOURCE, all, by, json, lines, lines_by_addr2line, lines_of, options, run},
    slot,
};
use varid_model::Layer;
use varid_recording::{Host, KeptFile, RecordedFile, SessionReader};
use varid_report::{
    CodeFilter, Error, GroupBy, MissingPart, NameOptions, NamePattern, Options, Profile, View,
};
use varid_symbolizer::{
    elf::{SymbolFile, SymbolFileLimits},
    hex,
};

/// Returns the entry of the missing file at this path. There must be at most one.
fn missing(profile: &Profile, path: &Path) -> Option<(MissingPart, u64, String)> {
    let event = profile.event(None).unwrap();
    let of_it = event.missing.iter().filter(|missing| missing.file == path);
    let mut of_it =
        of_it.map(|missing| (missing.part, missing.weight.samples(), missing.why.clone()));
    let found = of_it.next();
    assert!(of_it.next().is_none());
    found
}

#[test]
fn a_missing_library_is_named_and_found_in_each_search_folder() {
    let native = Native::new(true);
    let samples = native.addresses.len() as u64;
    let gone = native.profile(NameOptions::default());
    let (lack, weight, why) = missing(&gone, &native.recorded).unwrap();
    assert_eq!((lack, weight), (MissingPart::File, samples));
    assert!(why.contains("No such file"), "{why}");
    assert_eq!(
        gone.event(None).unwrap().missing[0].file,
        native.recorded,
        "what helps most comes first"
    );
    assert_eq!(gone.event(None).unwrap().missing[0].build_id.len(), 40);

    let dir = native.fixture.dir.path();
    let expected = lines_by_addr2line(&native.library, &native.addresses);
    // In a copy of the recorded machine's file system.
    let symfs = dir.join("symfs");
    let inside = symfs.join(native.recorded.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::copy(&native.library, &inside).unwrap();
    let names = NameOptions {
        symfs: Some(symfs),
        inlined: true,
        lines: true,
        ..NameOptions::default()
    };
    assert_eq!(lines(&native.profile(names.clone())), expected);
    // Stripped in that copy, with its debug information in a folder under any name.
    let folder = dir.join("symbols/deep");
    fs::create_dir_all(&folder).unwrap();
    run(Command::new("objcopy")
        .arg("--only-keep-debug")
        .args([&native.library, &folder.join("any.debug")]));
    run(Command::new("strip").arg(&inside));
    let stripped = native.profile(names.clone());
    let lack = missing(&stripped, &native.recorded).map(|(lack, ..)| lack);
    assert_eq!(lack, Some(MissingPart::Lines));
    let names = NameOptions {
        symbols: vec![dir.join("symbols")],
        ..names
    };
    let whole = native.profile(names);
    assert_eq!(lines(&whole), expected);
    assert_eq!(missing(&whole, &native.recorded), None);
    // Both in the symbols folder.
    fs::rename(&inside, dir.join("symbols/libnative.so")).unwrap();
    let whole = native.profile(all(&dir.join("symbols")));
    assert_eq!(lines(&whole), expected);
}

#[test]
fn a_stripped_library_has_names_of_an_unstripped_copy() {
    let native = Native::new(true);
    let dir = native.fixture.dir.path();
    let symfs = dir.join("symfs");
    let inside = symfs.join(native.recorded.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    run(Command::new("strip")
        .args(["-o"])
        .args([&inside, &native.library]));
    let names = |symbols: &[PathBuf]| NameOptions {
        symfs: Some(symfs.clone()),
        symbols: symbols.to_vec(),
        ..NameOptions::default()
    };
    let has =
        |profile: &Profile, name: &str| profile.frames.symbols().iter().any(|s| s.name == name);
    let stripped = native.profile(names(&[]));
    assert!(has(&stripped, "leaf") && !has(&stripped, "hidden"));
    let (lack, ..) = missing(&stripped, &native.recorded).unwrap();
    assert_eq!(lack, MissingPart::Names);
    // With symbols only, no debug information.
    let folder = dir.join("unstripped");
    fs::create_dir(&folder).unwrap();
    run(Command::new("strip")
        .args(["-g", "-o"])
        .args([&folder.join("lib.so"), &native.library]));
    let whole = native.profile(names(&[folder]));
    assert!(has(&whole, "leaf") && has(&whole, "hidden"));
    assert_eq!(missing(&whole, &native.recorded), None);
    // In a cache under another name. An unnamed function is named after the recorded file.
    let cache = dir.join("cache");
    fs::create_dir(&cache).unwrap();
    fs::rename(&inside, cache.join("0123")).unwrap();
    let cached = native.profile(NameOptions {
        symbols: vec![cache],
        ..NameOptions::default()
    });
    let image = native.recorded.file_name().unwrap().to_str().unwrap();
    let symbols = cached
        .frames
        .symbols()
        .iter()
        .map(|symbol| symbol.name.as_str());
    let unnamed: Vec<&str> = symbols.filter(|name| name.contains("+0x")).collect();
    assert!(has(&cached, "leaf") && !unnamed.is_empty());
    assert!(
        unnamed.iter().all(|name| name.starts_with(image)),
        "{unnamed:?}"
    );
}

#[test]
fn another_build_is_used_from_nowhere() {
    let native = Native::new(true);
    let dir = native.fixture.dir.path();
    let other = dir.join("other");
    let inside = other.join(native.recorded.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::write(dir.join("native.c"), SOURCE.replace("n * 2", "n * 3")).unwrap();
    run(Command::new("cc")
        .args(["-O2", "-g", "-fPIC", "-shared", "-Wl,--build-id=sha1", "-o"])
        .args([&inside, &dir.join("native.c")]));
    let profile = native.profile(NameOptions {
        symfs: Some(other.clone()),
        symbols: vec![other],
        ..NameOptions::default()
    });
    assert!(
        !profile
            .frames
            .symbols()
            .iter()
            .any(|symbol| symbol.name == "leaf")
    );
    let (lack, _, why) = missing(&profile, &native.recorded).unwrap();
    assert_eq!(lack, MissingPart::File);
    assert!(why.contains("build-id"), "{why}");
}

#[test]
fn a_file_without_build_id_is_believed_on_the_machine_of_the_recording_only() {
    let native = Native::new(false);
    fs::create_dir(native.recorded.parent().unwrap()).unwrap();
    fs::copy(&native.library, &native.recorded).unwrap();
    let elsewhere = native.profile(NameOptions::default());
    assert!(
        !elsewhere
            .frames
            .symbols()
            .iter()
            .any(|symbol| symbol.name == "leaf")
    );
    let (_, _, why) = missing(&elsewhere, &native.recorded).unwrap();
    assert!(why.contains("the recording is another one's"), "{why}");
    // The user may name the file, and the machine may be that of the recording.
    let root = native.fixture.dir.path().join("root");
    let inside = root.join(native.recorded.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::copy(&native.library, &inside).unwrap();
    let told = native.profile(NameOptions {
        symfs: Some(root),
        ..NameOptions::default()
    });
    assert!(
        told.frames
            .symbols()
            .iter()
            .any(|symbol| symbol.name == "leaf")
    );
    let path = native.fixture.session.join("session.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    manifest["host"] = serde_json::to_value(Host::this_machine()).unwrap();
    fs::write(&path, manifest.to_string()).unwrap();
    // The file was written today, and the recording is much older.
    let later = native.profile(NameOptions::default());
    let (_, _, why) = missing(&later, &native.recorded).unwrap();
    assert!(why.contains("it was changed after"), "{why}");
    manifest["wall_start"] = "9999-01-01T00:00:00Z".into();
    fs::write(&path, manifest.to_string()).unwrap();
    let here = native.profile(NameOptions::default());
    assert!(
        here.frames
            .symbols()
            .iter()
            .any(|symbol| symbol.name == "leaf")
    );
    // The file that was mapped, and another one that is at its path now.
    let is_named = |profile: &Profile| {
        let mut symbols = profile.frames.symbols().iter();
        symbols.any(|symbol| symbol.name == "leaf")
    };
    let path_text = native.recorded.to_str().unwrap().to_owned();
    let meta = fs::metadata(&native.recorded).unwrap();
    let recorded = RecordedFile::of(path_text, &meta);
    manifest["files"] = serde_json::to_value([&recorded]).unwrap();
    fs::write(&path, manifest.to_string()).unwrap();
    assert!(is_named(&native.profile(NameOptions::default())));
    let copy = native.recorded.with_extension("copy");
    fs::copy(&native.library, &copy).unwrap();
    fs::rename(&copy, &native.recorded).unwrap();
    let other = native.profile(NameOptions::default());
    assert!(!is_named(&other));
    let (_, _, why) = missing(&other, &native.recorded).unwrap();
    assert!(why.contains("it is another file"), "{why}");
    let meta = fs::metadata(&native.recorded).unwrap();
    let second = RecordedFile::of(recorded.path.clone(), &meta);
    manifest["files"] = serde_json::to_value([&recorded, &second]).unwrap();
    fs::write(&path, manifest.to_string()).unwrap();
    let both = native.profile(NameOptions::default());
    let (_, _, why) = missing(&both, &native.recorded).unwrap();
    assert!(why.contains("different files had this path"), "{why}");
    manifest["files"] = serde_json::to_value([&second]).unwrap();
    // Without this key, the machine of the recording is unknown.
    manifest["host"].as_object_mut().unwrap().remove("machine");
    fs::write(&path, manifest.to_string()).unwrap();
    let unknown = native.profile(NameOptions::default());
    let (_, _, why) = missing(&unknown, &native.recorded).unwrap();
    assert!(why.contains("the recording is another one's"), "{why}");
}

#[test]
fn links_in_a_file_system_lead_nowhere_outside_of_it() {
    let native = Native::new(false);
    let dir = native.fixture.dir.path();
    let symfs = dir.join("symfs");
    let inside = symfs.join(native.recorded.strip_prefix("/").unwrap());
    let folder = inside.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    let names_leaf = || {
        let profile = native.profile(NameOptions {
            symfs: Some(symfs.clone()),
            ..NameOptions::default()
        });
        profile
            .frames
            .symbols()
            .iter()
            .any(|symbol| symbol.name == "leaf")
    };
    // The host's file, by its path and by a relative link.
    let host = dir.join("host.so");
    fs::copy(&native.library, &host).unwrap();
    let ups = "../".repeat(symfs.components().count() + 40);
    for target in [
        host.clone(),
        Path::new(&ups).join(host.strip_prefix("/").unwrap()),
    ] {
        symlink(&target, &inside).unwrap();
        assert!(fs::read(&inside).is_ok() && !names_leaf(), "{target:?}");
        fs::remove_file(&inside).unwrap();
    }
    // A cycle.
    symlink(&inside, &inside).unwrap();
    symlink("/circle", symfs.join("circle")).unwrap();
    assert!(!names_leaf());
    fs::remove_file(&inside).unwrap();
    symlink("/circle", &inside).unwrap();
    assert!(!names_leaf());
    fs::remove_file(&inside).unwrap();
    // Links inside, absolute and relative.
    fs::create_dir(symfs.join("real")).unwrap();
    fs::copy(&native.library, symfs.join("real/1.so")).unwrap();
    symlink("1.so", symfs.join("real/link.so")).unwrap();
    symlink("/real", symfs.join("alias")).unwrap();
    symlink("/alias/../alias/link.so", &inside).unwrap();
    assert!(names_leaf());
}

#[test]
fn a_mapping_file_gives_the_apps_methods_their_names_back() {
    let mut fixture = Fixture::new();
    fixture.samples(3, (100, 100), &[DRAW, RUN + 1]);
    fixture.samples(1, (100, 100), &[LIBFOO + 0x1010, APP + 0x1211]);
    fixture.writer.finish().unwrap();
    let path = fixture.dir.path().join("mapping.txt");
    let mapping = "\
com.acme.Ball -> org.example.Balls:
    void paint() -> draw
    int fibonacci(int) -> fib
java.lang.Wrong -> java.lang.Math:
    double no(double) -> sqrt
";
    fs::write(&path, mapping).unwrap();
    let names = NameOptions {
        mapping: Some(path.clone()),
        ..NameOptions::default()
    };
    let profile = fixture.profile(&options(names.clone()));
    for name in ["paint", "draw"] {
        let view = View {
            code: CodeFilter {
                symbol: Some(NamePattern::new(&format!(r"\.{name}$")).unwrap()),
                ..CodeFilter::default()
            },
            ..by(GroupBy::Symbol)
        };
        let report = json(&profile, &view);
        let [row] = &report["rows"].as_array().unwrap()[..] else {
            panic!("{report}");
        };
        assert_eq!(row["symbol"], "com.acme.Ball.paint");
        assert_eq!(row["recorded_symbol"], "org.example.Balls.draw");
        assert_eq!(row["self"], 3);
    }
    let found: Vec<_> = profile
        .frames
        .symbols()
        .iter()
        .map(|symbol| symbol.name.as_str())
        .collect();
    assert!(found.contains(&"com.acme.Ball.run"), "{found:?}");
    assert!(found.contains(&"com.acme.Ball.fibonacci"), "{found:?}");

    // R8 writes bytecode offsets as lines if it omits lines: DRAW is at unit 8.
    let mapping = "\
# compiler: R8
com.acme.Ball -> org.example.Balls:
    0:7:void before():10 -> draw
    8:20:void com.acme.Inner.paint():33 -> draw
    8:20:void after():11 -> draw
";
    fs::write(&path, mapping).unwrap();
    let profile = fixture.profile(&options(NameOptions {
        lines: true,
        inlined: true,
        ..names.clone()
    }));
    let report = json(&profile, &by(GroupBy::Line));
    let row = |symbol: &str| {
        let mut rows = report["rows"].as_array().unwrap().iter();
        rows.find(|row| row["symbol"] == symbol).unwrap()
    };
    let inner = row("com.acme.Inner.paint");
    assert_eq!((&inner["self"], &inner["line"]), (&3.into(), &33.into()));
    assert_eq!(row("com.acme.Ball.after")["line"], 11);
    // Not in the file: its offset is not shown as a line.
    assert!(row("com.acme.Ball.run")["line"].is_null());

    fs::write(&path, "no mapping\n").unwrap();
    let session = SessionReader::open(&fixture.session).unwrap();
    let error = Profile::from_session(&session, &options(names.clone())).unwrap_err();
    assert!(matches!(error, Error::Symbols { .. }), "{error}");
    assert!(error.to_string().contains("line 1"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = Profile::from_session(&session, &options(names)).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
    let error = Profile::from_session(&session, &options(all(&path))).unwrap_err();
    assert!(matches!(error, Error::Folder { .. }), "{error}");
}

/// An app whose libraries are not extracted maps them from its APK.
#[test]
fn a_library_in_an_archive_has_its_names_and_lines() {
    /// Writes an APK with a page-aligned library after another one.
    const APK: &str = r#"
import sys, zipfile
apk, library = sys.argv[1:]
with zipfile.ZipFile(apk, "w") as made:
    made.writestr("lib/x86_64/libother.so", b"\x7fELF" + bytes(5000))
    entry = zipfile.ZipInfo("lib/x86_64/libnative.so")
    entry.extra = b"\0" * (-(made.fp.tell() + 30 + len(entry.filename)) % 4096)
    made.writestr(entry, open(library, "rb").read())
"#;
    for with_build_id in [true, false] {
        let path = "gone/base.apk!lib/x86_64/libnative.so";
        let native = Native::recorded_as(path, with_build_id);
        let dir = native.fixture.dir.path();
        let expected = lines_by_addr2line(&native.library, &native.addresses);
        let names = |names| NameOptions {
            inlined: true,
            lines: true,
            ..names
        };
        let symfs = dir.join("symfs");
        let apk = symfs.join(dir.join("gone/base.apk").strip_prefix("/").unwrap());
        fs::create_dir_all(apk.parent().unwrap()).unwrap();
        run(Command::new("python3")
            .args(["-c", APK])
            .args([&apk, &native.library]));
        let in_archive = native.profile(names(NameOptions {
            symfs: Some(symfs),
            ..NameOptions::default()
        }));
        assert_eq!(lines(&in_archive), expected);
        assert_eq!(missing(&in_archive, &native.recorded), None);
        // As a separate file, which only the build-id distinguishes from others with that name.
        let folder = dir.join("symbols");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(&native.library, folder.join("libnative.so")).unwrap();
        let alone = native.profile(names(NameOptions {
            symbols: vec![folder],
            ..NameOptions::default()
        }));
        assert_eq!(lines(&alone) == expected, with_build_id);
    }
}

#[test]
fn a_file_of_the_session_that_is_gone_is_missing() {
    let fixture = Fixture::full();
    let whole = fixture.profile(&Options::default());
    for (name, samples) in [("app.elf", 99), ("remap.elf", 18)] {
        let path = fixture.session.join("symbols").join(name);
        assert_eq!(missing(&whole, &path), None);
        fs::remove_file(&path).unwrap();
        let profile = fixture.profile(&Options::default());
        let (lack, weight, why) = missing(&profile, &path).unwrap();
        assert_eq!((lack, weight), (MissingPart::File, samples), "{name}");
        assert!(why.contains("No such file"), "{why}");
        let missing = profile
            .event(None)
            .unwrap()
            .missing
            .iter()
            .find(|missing| missing.file == path);
        assert_eq!(
            missing.unwrap().fetch,
            ["copy the whole session from where it was recorded"]
        );
    }
}

/// Keeps the symbols of the library in the session, as `file` below it, with this number of bytes of debug information.
fn keep(native: &Native, file: &str, debug: u64) {
    let path = native.fixture.session.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let limits = SymbolFileLimits {
        names: 1 << 20,
        debug,
    };
    let part = SymbolFile::open(&native.library, None, limits).unwrap();
    part.write(fs::File::create(path).unwrap()).unwrap();
}

fn change_manifest(native: &Native, change: impl FnOnce(&mut serde_json::Value)) {
    let path = native.fixture.session.join("session.json");
    let mut manifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).unwrap();
}

#[test]
fn a_file_that_is_gone_has_the_names_that_the_session_keeps() {
    let names = NameOptions {
        inlined: true,
        lines: true,
        ..NameOptions::default()
    };
    for with_build_id in [true, false] {
        let native = Native::new(with_build_id);
        keep(&native, "symbols/0a/libnative.so", 1 << 20);
        let build_id = match with_build_id {
            true => native.profile(names.clone()).event(None).unwrap().missing[0]
                .build_id
                .clone(),
            false => String::new(),
        };
        let kept = KeptFile {
            path: native.recorded.to_str().unwrap().to_owned(),
            build_id,
            file: "symbols/0a/libnative.so".to_owned(),
        };
        change_manifest(&native, |manifest| {
            manifest["kept"] = serde_json::to_value([&kept]).unwrap()
        });
        let whole = native.profile(names.clone());
        let expected = lines_by_addr2line(&native.library, &native.addresses);
        assert_eq!(lines(&whole), expected);
        assert_eq!(missing(&whole, &native.recorded), None);
        // Two files had that path: without a build-id, it is unknown which one the names belong to.
        let other = RecordedFile::of(kept.path.clone(), &fs::metadata(&native.library).unwrap());
        let second = RecordedFile {
            inode: 1,
            ..other.clone()
        };
        change_manifest(&native, |manifest| {
            manifest["files"] = serde_json::to_value([&other, &second]).unwrap();
        });
        let two = lines(&native.profile(names.clone()));
        assert_eq!(two == expected, with_build_id);
    }
}

/// The library as a file that cannot be found, so that its mappings use the session's file.
fn recorded_as_the_sessions(debug: u64) -> Native {
    let native = Native::recorded_as("session/symbols/0a/libnative.so", true);
    keep(&native, "symbols/0a/libnative.so", debug);
    change_manifest(&native, |manifest| {
        let image = serde_json::json!({
            "path": "/opt/python/libpython3.12.so.1", "build_id": "", "kind": "elf", "layer": "native",
            "substitute": "symbols/0a/libnative.so",
        });
        manifest["images"].as_array_mut().unwrap().push(image);
    });
    native
}

/// For example in the root of its container.
#[test]
fn the_original_of_the_sessions_own_file_is_used_where_it_is_found() {
    let native = recorded_as_the_sessions(0);
    let symfs = native.fixture.dir.path().join("symfs");
    fs::create_dir_all(symfs.join("opt/python")).unwrap();
    let original = symfs.join("opt/python/libpython3.12.so.1");
    fs::copy(&native.library, &original).unwrap();
    let names = NameOptions {
        inlined: true,
        lines: true,
        symfs: Some(symfs),
        ..NameOptions::default()
    };
    let lines = || lines_of(&native.profile(names.clone()), "libpython3.12.so.1");
    let expected = lines_by_addr2line(&native.library, &native.addresses);
    assert_eq!(lines(), expected);
    // Another file at its path is not used for names.
    fs::copy(std::env::current_exe().unwrap(), &original).unwrap();
    let named = native.profile(names.clone());
    assert_ne!(lines(), expected);
    let mut symbols = named.frames.symbols().iter();
    assert!(symbols.any(|symbol| symbol.name == "leaf"));
}

#[test]
fn a_mapping_of_the_sessions_own_file_is_shown_as_the_original() {
    let native = recorded_as_the_sessions(1 << 20);
    // The session may have been moved.
    let moved = native.fixture.dir.path().join("moved");
    fs::rename(&native.fixture.session, &moved).unwrap();
    let names = NameOptions {
        inlined: true,
        lines: true,
        ..NameOptions::default()
    };
    let session = SessionReader::open(&moved).unwrap();
    let profile = Profile::from_session(&session, &options(names)).unwrap();
    let expected = lines_by_addr2line(&native.library, &native.addresses);
    assert_eq!(lines_of(&profile, "libpython3.12.so.1"), expected);
    let images = profile.frames.images().iter();
    let mut images = images.filter(|image| image.name == "libpython3.12.so.1");
    let image = images.next().unwrap();
    assert_eq!(
        image.path.as_deref(),
        Some(Path::new("/opt/python/libpython3.12.so.1"))
    );
    assert_eq!(image.layer, Layer::Vm, "a runtime, wherever its file was");
}

/// As of a killed recording, or where the manifest has no more room. Sessions of earlier versions have the second layout.
#[test]
fn a_substitute_that_the_manifest_does_not_list_is_of_bytecode() {
    let id = [0xab; 20];
    for (name, kept) in [
        (format!("{}/math.dex", hex(&id)), false),
        (format!("{}.elf", hex(&id)), false),
        (format!("{}/math.dex", hex(&[0xba; 20])), true),
    ] {
        let mut fixture = Fixture::new();
        let path = fixture.writer.symbols().join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        elf(&path, &id, vec![slot(0x1000, "org.example.Balls.draw")]);
        fixture.map(100, 0x7600_0000_0000, &path, &id);
        fixture.samples(1, (100, 100), &[0x7600_0000_1000]);
        fixture.writer.finish().unwrap();
        let profile = fixture.profile(&Options::default());
        let mut images = profile.frames.images().iter();
        let image = images.find(|image| name.ends_with(&image.name)).unwrap();
        let layer = if kept { Layer::Native } else { Layer::App };
        assert_eq!(image.layer, layer, "{name}");
        assert_eq!(missing(&profile, &path), None, "{name}");
    }
}

#[test]
fn a_library_with_a_broken_table_has_a_note() {
    const SYMTAB: u32 = 2;
    let mut fixture = Fixture::new();
    let (path, id) = (fixture.dir.path().join("broken.so"), [0xab; 20]);
    elf(&path, &id, vec![slot(0x1000, "f")]);
    let mut bytes = std::fs::read(&path).unwrap();
    let headers = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let table = (headers..bytes.len())
        .step_by(64)
        .find(|at| bytes[at + 4..at + 8] == SYMTAB.to_le_bytes());
    let size = table.unwrap() + 32;
    bytes[size..size + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    fixture.map(100, 0x7600_0000_0000, &path, &id);
    fixture.samples(1, (100, 100), &[0x7600_0000_1000]);
    fixture.writer.finish().unwrap();
    let notes = fixture.profile(&Options::default()).recording.notes;
    let of_table = |note: &&String| note.contains("broken.so cannot be read as a whole");
    assert!(
        notes
            .iter()
            .filter(of_table)
            .any(|note| note.contains(".symtab")),
        "{notes:?}"
    );
}
